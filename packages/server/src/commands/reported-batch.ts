import { idOfText } from "../ids.ts";

/**
 * Names the batch that a switch put a transaction in, or settled by it: the same for all that it reports with one mid,
 * tid and batch number, as given. A number that comes again names the same batch again: what is of which round is told
 * by time. Null without a batch number, and where neither mid nor tid says whose number it is.
 *
 * @param fields the report's facts, by the names of its table
 */
export function reportedBatch(partnerId: string, fields: Readonly<Record<string, string>>): string | null {
  const { batchNo = "", mid = "", tid = "" } = fields;
  if (batchNo === "" || (mid === "" && tid === "")) return null;
  // No value holds a NUL: values are read apart again.
  return idOfText([partnerId, mid, tid, batchNo].join("\0"));
}
