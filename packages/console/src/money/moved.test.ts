import { expect, test } from "vitest";
import { movedInWords } from "./moved.tsx";

const sale = { command: "SALE", state: "SUCCESS", isoResponseCode: "00", reversal: null } as const;
const preAuth = { ...sale, command: "PREAUTH" } as const;
const failed = { ...sale, state: "ERROR", isoResponseCode: "51" } as const;
const stands = { ...failed, isoResponseCode: "96", reversal: "stands" } as const;
const open = { batchNo: "7", state: "open" } as const;
const by = (command: "VOID" | "REVERSAL" | "PREAUTH_COMPLETE", state: "SUCCESS" | "ERROR" = "SUCCESS") => ({
  command,
  state,
});
type Given = Parameters<typeof movedInWords>;

test.each<[one: Given[0], followers: Given[1], batch: Given[2], tone: string, words: string]>([
  [sale, [], open, "good", "Approved by the acquirer; not settled yet: its batch 7 is open"],
  [sale, [], { ...open, state: "closing" }, "good", "Approved by the acquirer; its batch 7 is being settled"],
  [sale, [], { ...open, state: "closed" }, "good", "Approved by the acquirer, and settled in batch 7"],
  [sale, [], null, "good", "Approved by the acquirer"],
  [sale, [by("VOID")], open, "quiet", "Approved, and undone by a Void since"],
  [sale, [by("VOID", "ERROR")], null, "good", "Approved by the acquirer"],
  [sale, [by("REVERSAL")], open, "quiet", "Approved, and undone by a Reversal since"],
  [preAuth, [], null, "good", "Approved: the amount is held"],
  [preAuth, [by("PREAUTH_COMPLETE")], null, "good", "Approved, and completed since"],
  [preAuth, [by("PREAUTH_COMPLETE"), by("VOID")], null, "quiet", "Approved, and undone by a Void since"],
  [{ ...sale, state: "INIT" }, [], null, "wait", "Under way: the acquirer has not answered"],
  [failed, [], null, "bad", "Declined: 51 Not sufficient funds; no money moved"],
  [{ ...failed, isoResponseCode: null }, [], null, "bad", "Declined: 96 System malfunction; no money moved"],
  [
    { ...failed, reversal: "parked" },
    [],
    null,
    "bad",
    "In doubt: its Reversal was given up, and the acquirer may hold it",
  ],
  [{ ...failed, reversal: "pending" }, [], null, "wait", "In doubt: it is being reversed at the acquirer"],
  [{ ...failed, reversal: "done" }, [], null, "quiet", "Reversed at the acquirer: no money moved"],
  [stands, [], open, "bad", "Stands: the acquirer refuses to undo it; its IPN said 96"],
  [{ ...sale, reversal: "stands" }, [], open, "bad", "Stands: the acquirer refuses to undo it"],
  [{ ...sale, reversal: "stands" }, [by("VOID")], open, "quiet", "Approved, and undone by a Void since"],
])("of %j, followed by %j, in %j the money is told: %s, %s", (one, followers, batch, tone, word) => {
  expect(movedInWords(one, followers, batch, Date.UTC(2026, 10, 22))).toEqual({ tone, word });
});

test("a settled one says when, of a batch whose end is known", () => {
  const now = new Date(2026, 10, 22, 12).getTime();
  const { word } = movedInWords(
    sale,
    [],
    { batchNo: "7", state: "closed", closedAt: new Date(now).toISOString() },
    now,
  );
  expect(word).toMatch(/^Approved by the acquirer, and settled in batch 7, \d\d:00:00$/);
});
