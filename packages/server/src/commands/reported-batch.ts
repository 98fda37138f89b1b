import { idOfText } from "../ids.ts";

/**
 * The id of the batch that a switch assigned a transaction to, or settled with it: the same for all reports with one
 * mid, tid and batch number, as given. A reused number has the same id again; time distinguishes the rounds. Null
 * without a batch number, and without both mid and tid.
 *
 * @param fields the report's facts, by the names of its table
 */
export function reportedBatch(partnerId: string, fields: Readonly<Record<string, string>>): string | null {
  const { batchNo = "", mid = "", tid = "" } = fields;
  if (batchNo === "" || (mid === "" && tid === "")) return null;
  // No value contains a NUL, so different values cannot collide.
  return idOfText([partnerId, mid, tid, batchNo].join("\0"));
}
