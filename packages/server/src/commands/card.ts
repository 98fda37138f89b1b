import { cardSchemes, contradicts, swipeTypes } from "@paybell/contract";
import type { FieldProblem } from "../errors.ts";
import { maskedNumberProblem } from "./masked-number.ts";
import type { CardRequest } from "./request.ts";
import { broken } from "./rules.ts";

/** An AID of five to sixteen bytes, ISO/IEC 7816-4; the first five are the scheme's. */
const aidPattern = /^[0-9A-Fa-f]{10,32}$/;
/** The chip was read, with or without contact: there is an application, so it has an ID. */
const withApplication: ReadonlySet<string> = new Set(["C", "CTL", "CL", "CLS"]);

const month = "(?:0[1-9]|1[0-2])";
const expiryPattern = new RegExp(
  `^(?:${month}\\d{2}|\\d{2}${month}|${month}/(?:\\d{2}|\\d{4})|\\d{4}-${month}|[*Xx]{2}/?[*Xx]{2})$`,
);

/** Paid from a wallet or an account by a code: no card is read. */
const withoutCard: ReadonlySet<string> = new Set(["qrmo", "qrmo_api"]);

/** Checks everything about the card except full numbers, delimiters and text, which are checked in every field. */
export function cardProblems(card: CardRequest, paymentType: string): FieldProblem[] {
  const { number = "", scheme = "", aid = "", swipeType = "", expiry = "" } = card;
  const isCard = !withoutCard.has(paymentType);
  const problems: (FieldProblem | undefined)[] = [
    number === "" && isCard ? broken("card.number", "missing_field", "is required") : undefined,
    swipeType === "" && isCard ? broken("card.swipeType", "missing_field", "is required") : undefined,
    number === "" ? undefined : maskedNumberProblem("card.number", number),
    schemeProblem(scheme, aid),
    aid === "" || aidPattern.test(aid)
      ? undefined
      : broken("card.aid", "invalid_value", "must be 10 to 32 hexadecimal digits"),
    swipeType === "" ? undefined : swipeTypeProblem("card.swipeType", swipeType),
    expiry === "" || expiryPattern.test(expiry)
      ? undefined
      : broken(
          "card.expiry",
          "invalid_value",
          "must be MM/YY, MM/YYYY, YYYY-MM, MMYY or YYMM, or masked such as **/**",
        ),
  ];
  if (aid === "" && paymentType === "card" && withApplication.has(swipeType)) {
    problems.push(broken("card.aid", "aid_required", "is required for chip and contactless with paymentType card"));
  }
  return problems.filter((problem) => problem !== undefined);
}

function schemeProblem(scheme: string, aid: string): FieldProblem | undefined {
  if (scheme === "") return undefined;
  const unknown = cardSchemeProblem("card.scheme", scheme);
  if (unknown !== undefined) return unknown;
  if (!contradicts(aid, scheme)) return undefined;
  return broken("card.scheme", "scheme_contradicts_aid", "is not the scheme to which card.aid belongs");
}

function cardSchemeProblem(field: string, text: string): FieldProblem | undefined {
  if (cardSchemes.some((known) => known === text)) return undefined;
  return broken(field, "invalid_value", `must be one of ${cardSchemes.join(", ")}`);
}

export function swipeTypeProblem(field: string, text: string): FieldProblem | undefined {
  if (swipeTypes.some(({ code }) => code === text)) return undefined;
  return broken(field, "invalid_value", `must be one of ${swipeTypes.map(({ code }) => code).join(", ")}`);
}
