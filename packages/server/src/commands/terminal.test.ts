import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ServiceError } from "../errors.ts";
import { refusalError } from "./original.ts";
import { type TerminalAsks, type TerminalState, terminalRefusal } from "./terminal.ts";

const terminal: TerminalState = {
  mid: "M1",
  acquirer: "",
  batch: "open",
  batchCurrency: "VND",
  isSettlementInDoubt: false,
};
const sale: TerminalAsks = { mid: "M1", entersBatchWith: "VND", money: true };

describe("a terminal", () => {
  test.each<[string, TerminalState, TerminalAsks]>([
    ["in the batch's currency", terminal, sale],
    ["in any currency while the batch is empty", { ...terminal, batchCurrency: null }, sale],
    ["that enters no batch", terminal, { ...sale, entersBatchWith: null }],
    ["that moves no money, while the batch is settled", { ...terminal, batch: "closing" }, { ...sale, money: false }],
  ])("takes a command %s", (_, state, asks) => {
    expect(terminalRefusal(state, asks)).toBeUndefined();
  });

  test("refuses another mid before all else, and does not tell its own", () => {
    const refusal = terminalRefusal({ ...terminal, batch: "closing" }, { ...sale, mid: "M2", entersBatchWith: "USD" });
    expect(refusal?.code).toBe("terminal_mid_mismatch");
    expect(refusal?.message).not.toContain("M1");
  });

  test("refuses what enters its batch after an original of another acquirer", () => {
    const refusal = terminalRefusal({ ...terminal, acquirer: "first" }, { ...sale, mid: null, acquirer: "" });
    expect(refusal?.code).toBe("other_acquirer");
    expect(terminalRefusal({ ...terminal, acquirer: "first" }, { ...sale, acquirer: "first" })).toBeUndefined();
  });

  test("refuses money while its batch is settled, and says when to come again", () => {
    const refusal = terminalRefusal({ ...terminal, batch: "closing" }, sale);
    expect(refusal).toMatchObject({ code: "settlement_in_progress", retryAfterS: 5 });
  });

  test("refuses to settle, and only that, while it is in doubt what the acquirer settled", () => {
    const inDoubt = { ...terminal, isSettlementInDoubt: true };
    expect(terminalRefusal(inDoubt, { ...sale, settles: true })).toMatchObject({ code: "settlement_in_doubt" });
    expect(terminalRefusal(inDoubt, sale)).toBeUndefined();
  });

  test("refuses a second currency in one batch, naming both", () => {
    expect(terminalRefusal(terminal, { ...sale, entersBatchWith: "USD" })).toEqual({
      code: "batch_currency",
      message: "The terminal's open batch is in VND: settle it before anything in USD.",
    });
  });

  test("never holds two currencies in one batch, whatever comes", () => {
    const currencies = fc.array(fc.constantFrom("VND", "USD", "KWD"), { minLength: 1 });
    fc.assert(
      fc.property(currencies, (asked) => {
        let batchCurrency: string | null = null;
        const entered = new Set<string>();
        for (const currency of asked) {
          const state: TerminalState = { ...terminal, batchCurrency };
          if (terminalRefusal(state, { ...sale, entersBatchWith: currency }) !== undefined) continue;
          batchCurrency = currency;
          entered.add(currency);
        }
        expect([...entered]).toEqual([asked[0]]);
      }),
    );
  });
});

test("a refusal leaves as the error of its code, with its message and its wait", () => {
  const error = refusalError({ code: "settlement_in_progress", message: "Wait.", retryAfterS: 5 });
  expect(error).toBeInstanceOf(ServiceError);
  expect(error).toMatchObject({ code: "settlement_in_progress", status: 409, message: "Wait.", retryAfterS: 5 });
  expect(refusalError({ code: "in_doubt", message: "Wait." }).retryAfterS).toBeUndefined();
});
