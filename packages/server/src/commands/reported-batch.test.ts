import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { newId } from "../ids.ts";
import { reportedBatch } from "./reported-batch.ts";

const partnerId = newId<"partner">();
const of17 = { mid: "M00000000000001", tid: "T0000001", batchNo: "000017" };

describe("the batch that a switch names", () => {
  test("is the same for the same partner, mid, tid and number, whatever else a report says", () => {
    expect(reportedBatch(partnerId, { ...of17, amount: "5" })).toBe(reportedBatch(partnerId, of17));
    expect(reportedBatch(partnerId, of17)).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
  });

  test("is none without a number, and where nothing says whose number it is", () => {
    expect(reportedBatch(partnerId, { ...of17, batchNo: "" })).toBeNull();
    expect(reportedBatch(partnerId, { batchNo: "000017" })).toBeNull();
    expect(reportedBatch(partnerId, { batchNo: "000017", mid: "M" })).not.toBeNull();
    expect(reportedBatch(partnerId, { batchNo: "000017", tid: "M" })).not.toBeNull();
  });

  test("is another one for any other partner, mid, tid or number", () => {
    const text = fc.stringMatching(/^[0-9A-Za-z ]{1,6}$/);
    const named = fc.record({ mid: text, tid: text, batchNo: text });
    fc.assert(
      fc.property(named, named, (one, other) => {
        const isSame = one.mid === other.mid && one.tid === other.tid && one.batchNo === other.batchNo;
        expect(reportedBatch(partnerId, one) === reportedBatch(partnerId, other)).toBe(isSame);
        for (const field of ["mid", "tid", "batchNo"] as const) {
          const changed = { ...one, [field]: other[field] };
          const isSameField = one[field] === other[field];
          expect(reportedBatch(partnerId, changed) === reportedBatch(partnerId, one)).toBe(isSameField);
        }
        // The end of one field is not the beginning of the next.
        const shifted = { mid: one.mid + one.tid, tid: "", batchNo: one.batchNo };
        expect(reportedBatch(partnerId, shifted)).not.toBe(reportedBatch(partnerId, one));
      }),
    );
    expect(reportedBatch(newId(), of17)).not.toBe(reportedBatch(partnerId, of17));
  });
});
