import type { Signing } from "@paybell/contract";
import type { FieldProblem } from "../errors.ts";
import { delimiterProblem } from "./delimiter.ts";
import { broken } from "./rules.ts";
import { isSendable, replaceUnsendable } from "./text.ts";

/** What an acquirer answered, field by field. */
export interface AcquirerReply {
  /** ISO 8583 field 39. */
  readonly responseCode: string;
  readonly approveCode: string;
  readonly refId: string;
  readonly tc: string;
  /** For whoever asked: no facts are made of it. */
  readonly emv?: string;
}

/** How asking the acquirer ended. */
export type AcquirerOutcome =
  | { readonly kind: "answered"; readonly answer: AcquirerReply; readonly approvals: ReadonlySet<string> }
  /** It was asked, or may have been, and did not answer in time. */
  | { readonly kind: "no_answer" }
  /** The message certainly never left. */
  | { readonly kind: "not_sent" }
  /** Whoever asked is gone, and nobody knows whether an answer came. */
  | { readonly kind: "in_doubt" };

/** What an outcome means for the transaction and for the money. */
export interface Judgement {
  readonly state: "SUCCESS" | "ERROR";
  readonly isoResponseCode: string;
  /** The money may have moved, and must not have: a Reversal follows. */
  readonly reverse: boolean;
  /** Empty where nothing was answered. */
  readonly answer: Omit<AcquirerReply, "responseCode" | "emv">;
  /** What was odd about the answer: nothing of it stops the IPN, all of it is told to the operator. */
  readonly warnings: readonly FieldProblem[];
}

const noAnswerCode = "68";
const notSentCode = "91";
const malfunctionCode = "96";
const successCode = "00";

const codePattern = /^[0-9A-Za-z]{2}$/;
const silence = { approveCode: "", refId: "", tc: "" };

/**
 * Only 00 is success. An approval under any other code is reversed: the partner is told ERROR, so nobody may be
 * charged.
 */
export function judge(outcome: AcquirerOutcome, signing: Signing): Judgement {
  switch (outcome.kind) {
    case "answered":
      return judgeAnswer(outcome.answer, outcome.approvals, signing);
    case "no_answer":
      return failed(noAnswerCode, true);
    case "not_sent":
      return failed(notSentCode, false);
    case "in_doubt":
      return failed(malfunctionCode, true);
  }
}

function failed(isoResponseCode: string, reverse: boolean, warnings: readonly FieldProblem[] = []): Judgement {
  return { state: "ERROR", isoResponseCode, reverse, answer: silence, warnings };
}

function judgeAnswer(answer: AcquirerReply, approvals: ReadonlySet<string>, signing: Signing): Judgement {
  const { responseCode } = answer;
  if (!codePattern.test(responseCode)) {
    // Nobody can tell what it meant. To reverse what was never approved harms nobody; not to reverse an approval does.
    return failed(malfunctionCode, true, [broken("isoResponseCode", "invalid_value", "from the acquirer is no code")]);
  }
  const success = responseCode === successCode;
  const texts = {
    approveCode: replaceUnsendable(answer.approveCode),
    refId: replaceUnsendable(answer.refId),
    tc: replaceUnsendable(answer.tc),
  };
  return {
    state: success ? "SUCCESS" : "ERROR",
    isoResponseCode: responseCode,
    reverse: !success && approvals.has(responseCode),
    answer: texts,
    warnings: answerWarnings(answer, texts, success ? signing : undefined),
  };
}

/** @param signing undefined: the IPN has none of these values, so none of them is signed */
function answerWarnings(
  answer: AcquirerReply,
  texts: Judgement["answer"],
  signing: Signing | undefined,
): FieldProblem[] {
  const names = ["approveCode", "refId", "tc"] as const;
  return names.flatMap((name) => {
    const replaced = isSendable(answer[name])
      ? undefined
      : broken(name, "invalid_text", "from the acquirer held NUL or half of a surrogate pair, replaced by U+FFFD");
    const delimiter = signing && delimiterProblem(name, texts[name], "card", signing);
    return [replaced, delimiter].filter((problem) => problem !== undefined);
  });
}
