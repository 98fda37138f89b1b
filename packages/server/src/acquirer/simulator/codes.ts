import type { AcquirerAnswer } from "../acquirer.ts";

/** An answer with only a code: a decline has no approval, and a system command has no reference. */
export function answered(responseCode: string): AcquirerAnswer {
  return { responseCode, approveCode: "", refId: "", tc: "" };
}

/** Its original is voided, completed, reversed, settled or declined; or it was itself reversed before it arrived. */
export const invalidTransaction = "12";
/** A PreAuth-Complete for more than was authorised. */
export const invalidAmount = "13";
/** A Void of another amount than its original's. */
export const wrongOriginalAmount = "64";

/** A number from 0 (included) to 1 (excluded), as Math.random gives. */
export type Random = () => number;

const approveCodeAlphabet = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ";
const approveCodeLength = 6;
const refIdDigits = 12;

/** Six letters and digits, as issuers give them: ISO 8583 field 38. */
export function approveCode(random: Random): string {
  let code = "";
  for (let at = 0; at < approveCodeLength; at += 1) {
    code += approveCodeAlphabet.charAt(Math.floor(random() * approveCodeAlphabet.length));
  }
  return code;
}

/** Twelve digits, as acquirers give them: ISO 8583 field 37. */
export function refId(random: Random): string {
  return Math.floor(random() * 10 ** refIdDigits)
    .toString()
    .padStart(refIdDigits, "0");
}
