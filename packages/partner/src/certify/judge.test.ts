import { describe, expect, it } from "vitest";
import { cases } from "./certify.ts";
import { findings, refusalVariants } from "./judge.ts";

const refusal = (code: string, body: string, status = 400, type = "text/plain") => ({
  code,
  came: { status, ms: 1, body: Buffer.from(body), headers: { "content-type": type }, early: false },
});
const bodiesOf = (...bodies: readonly string[]) =>
  refusalVariants(bodies.map((body, at) => refusal(String(at), body))).length;

describe("refusals look alike", () => {
  it("when they differ only in ids, times and counters", () => {
    expect(
      bodiesOf('{"id":"9b2c9f0e-7a0a-4f1e-8a53-1f5c8d1d8f00"}', '{"id":"0e1d5c3b-1c2d-4e5f-9a8b-7c6d5e4f3a2b"}'),
    ).toBe(1);
    expect(bodiesOf("refused at 2026-01-02T03:04:05.678Z", "refused at 2026-11-12T13:14:15.6Z")).toBe(1);
    expect(bodiesOf("request req_1f5c8d1d8f00a", "request req_9a8b7c6d5e4f3")).toBe(1);
  });

  it("not when words, status, type or length tell one from another", () => {
    expect(bodiesOf("bad signature", "too old")).toBe(2);
    expect(bodiesOf("v1-signature", "v1-timestamp")).toBe(2);
    expect(bodiesOf("", "refused")).toBe(2);
    expect(refusalVariants([refusal("a", "no"), refusal("b", "no", 401)])).toHaveLength(2);
    expect(refusalVariants([refusal("a", "no"), refusal("b", "no", 400, "text/html")])).toHaveLength(2);
  });

  it("the most frequent look first, with its cases", () => {
    const found = refusalVariants([refusal("a", "old"), refusal("b", "no"), refusal("c", "no")]);
    expect(found.map(({ body, cases }) => [body, cases])).toEqual([
      ["no", ["b", "c"]],
      ["old", ["a"]],
    ]);
  });
});

it("no remedy decides by a header that no signature covers", () => {
  const words = [...Object.values(findings), ...cases.flatMap((one) => Object.values(one.words ?? {}))];
  expect(words.length).toBeGreaterThan(cases.length);
  for (const { means, fix } of words) expect(means + fix).not.toContain("paybell-");
});
