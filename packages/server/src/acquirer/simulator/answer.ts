import type { AcquirerAnswer } from "../acquirer.ts";

/** An answer with only a code: a decline has no approval, and a system command has no reference. */
export function answered(responseCode: string): AcquirerAnswer {
  return { responseCode, approveCode: "", refId: "", tc: "" };
}

export const approved = "00";
export const partiallyApproved = "10";
/** Its original is voided, completed, reversed, settled or declined; or it was itself reversed before it arrived. */
export const invalidTransaction = "12";
/** A PreAuth-Complete for more than was authorised. */
export const invalidAmount = "13";
export const unknownRecord = "25";
/** A Void of another amount than its original's. */
export const wrongOriginalAmount = "64";
/** Another message under the id of one that was seen. */
export const duplicateTransmission = "94";
/** The totals of a Settlement are not the bank's. */
export const reconcileError = "95";
