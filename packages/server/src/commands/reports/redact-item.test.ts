import { expect, test } from "vitest";
import { redactItem } from "./redact-item.ts";

test("an item is kept whole", () => {
  const item = { externalId: "SW-1", amount: 5, settlementList: [{ reqId: "r", refNo: "1" }], more: null, on: true };
  expect(redactItem(item)).toEqual(item);
});

test("but for full card numbers, wherever they stand", () => {
  const pan = "4111 1111-1111 1111";
  const item = { tc: pan, list: [{ refNo: pan }], [pan]: "x", number: 4111111111111111, text: JSON.stringify({ pan }) };
  const text = JSON.stringify(redactItem(item));
  expect(text).not.toMatch(/4111/);
  expect(text.match(/holds what looks like card data/g)).toHaveLength(5);
});

test("and for security codes, PINs and tracks, by their names", () => {
  const card = { cvvCode: "123", card_cvv: 123, track2: ";4111111111111112=25121010000?", pin: "1234" };
  const text = JSON.stringify(redactItem({ card, ...card, note: "cvv 123", amount: "123" }));
  expect(text).not.toMatch(/25121010000|1234|"123"(?!})|:123/);
  expect(text).toContain('"amount":"123"');
  expect(text.match(/holds what looks like card data/g)).toHaveLength(9);
});

test("and bounded: long texts, lists, and what is nested deeply", () => {
  const nested = JSON.parse(`${'{"a":'.repeat(20)}1${"}".repeat(20)}`);
  const list = Array.from({ length: 50_000 }, (_, at) => ({ reqId: String(at) }));
  const kept = redactItem({ list, text: "x".repeat(100_000), nested }) as { list: unknown[] };
  expect(kept.list).toHaveLength(101);
  expect(kept.list.at(-1)).toBe("(49900 more)");
  expect(JSON.stringify(kept).length).toBeLessThan(10_000);
});

test("and storable: NUL and half of a surrogate pair are replaced", () => {
  expect(redactItem({ a: "x\0", b: "\ud800" })).toEqual({ a: "x\ufffd", b: "\ufffd" });
});
