import type { FieldProblem } from "../errors.ts";
import { broken } from "./rules.ts";

const firstShownMax = 6;
/** Numbers of 16 digits and more begin with an eight-digit issuer number (ISO/IEC 7812-1:2017). */
const firstShownOfLongMax = 8;
const longNumber = 16;
const lengthMax = 19;

const maskedPattern = /^(\d{0,8})[*Xx]{3,}\d{0,4}$/;

/** card.number shows at most the first six or eight digits and the last four. Spaces and dashes may group it. */
export function maskedNumberProblem(field: string, text: string): FieldProblem | undefined {
  const number = text.replace(/[ -]/g, "");
  const first = maskedPattern.exec(number)?.[1];
  const firstMax = number.length >= longNumber ? firstShownOfLongMax : firstShownMax;
  if (first !== undefined && first.length <= firstMax && number.length <= lengthMax) return undefined;
  return broken(
    field,
    "invalid_card_number",
    "must show at most the first six (eight of 16 or more) and the last four digits, * or X between",
  );
}

/** A number that a switch truncated in its own way is sent as given, if it shows no more digits than that. */
export function shownDigitsProblem(field: string, text: string): FieldProblem | undefined {
  const shownMax = firstShownOfLongMax + 4;
  const shown = text.replace(/\D/g, "").length;
  return shown <= shownMax
    ? undefined
    : broken(field, "invalid_card_number", `must show at most ${shownMax} digits, found ${shown}`);
}
