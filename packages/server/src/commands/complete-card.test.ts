import { defaultSigning } from "@paybell/contract";
import { expect, test } from "vitest";
import { type CardCommandFacts, completeCard } from "./complete-card.ts";
import { answer, approvals, originalFields } from "./original-facts.fixture.ts";
import type { AcquirerOutcome } from "./outcome.ts";

/** A follow-up at INIT, with what it inherited. */
const begun: CardCommandFacts = {
  kind: "card",
  command: "VOID",
  voidsPreAuth: true,
  fields: { ...originalFields, traceNo: "000043", status: "INIT", isoResponseCode: "", refId: "" },
};
const complete = (outcome: AcquirerOutcome, facts = begun) => completeCard(facts, outcome, defaultSigning);
const answered = (changes: Partial<typeof answer>) =>
  complete({ kind: "answered", answer: { ...answer, ...changes }, approvals }).facts.fields;

test("is SUCCESS for 00, with the acquirer's approveCode, refId and tc, and all else as at INIT", () => {
  const completed = complete({ kind: "answered", answer, approvals });
  expect(completed).toMatchObject({ state: "SUCCESS", reverse: false, warnings: [] });
  const { approveCode, refId, tc } = answer;
  const own = { status: "SUCCESS", isoResponseCode: "00", approveCode, refId, tc };
  expect(completed.facts).toEqual({ ...begun, fields: { ...begun.fields, ...own } });
});

test("keeps its original's approveCode, and its card's tc, where the acquirer sends none", () => {
  expect(answered({ approveCode: "", tc: "" })).toMatchObject({
    approveCode: "original approveCode",
    tc: "original tc",
  });
});

test("has no refId where the acquirer sends none", () => {
  expect(answered({ refId: "" })).toMatchObject({ refId: "" });
});

test("keeps the acquirer's own approveCode and refId where it fails, never its original's", () => {
  expect(answered({ responseCode: "51", approveCode: "" })).toMatchObject({ approveCode: "", refId: answer.refId });
  expect(answered({ responseCode: "10" })).toMatchObject({ approveCode: "A1B2C3", refId: answer.refId });
  expect(complete({ kind: "no_answer" }).facts.fields).toMatchObject({ approveCode: "", refId: "" });
});

test.each([
  [{ kind: "answered", answer: { ...answer, responseCode: "51" }, approvals }, "51", false],
  [{ kind: "answered", answer: { ...answer, responseCode: "10" }, approvals }, "10", true],
  [{ kind: "no_answer" }, "68", true],
  [{ kind: "not_sent" }, "91", false],
  [{ kind: "in_doubt" }, "96", true],
] as const)("%j is ERROR %s, reversed: %s", (outcome, isoResponseCode, reverse) => {
  const completed = complete(outcome);
  expect(completed).toMatchObject({ state: "ERROR", reverse });
  expect(completed.facts.fields).toMatchObject({ status: "ERROR", isoResponseCode, traceNo: "000043" });
});
