import { expect, test } from "vitest";
import type { Query } from "../client/api.ts";
import type { CommandContext } from "../shell/context.ts";
import type { NotificationSource } from "./feed.ts";
import { type Event, Relay, readTarget } from "./relay.ts";

test.each([
  [1, "1"],
  [250, "100 100 50"],
  [300, "100 100 100"],
])("--count %d ends after so many, also over pages, and the next run goes on from there", async (countMax, limits) => {
  const asked: Query[] = [];
  const get = async (_: string, query: Query) => {
    asked.push(query);
    const from = Number(query["after"] ?? 0);
    const items = Array.from({ length: Number(query["limit"]) }, (_, at) => ({ id: from + at, headers: {} }));
    return { items, next: String(from + items.length) };
  };
  const shown: unknown[] = [];
  const none = () => undefined;
  const output = { trouble: none, back: none, restarted: none, listening: none };
  const context = { signal: new AbortController().signal, nowMs: () => 0 } as CommandContext;
  const relay = new Relay(
    context,
    { api: { get }, opener: undefined } as unknown as NotificationSource,
    { ...output, show: ({ notification }: Event) => shown.push(notification.id) },
    { target: undefined, countMax, after: undefined, from: "beginning" },
  );
  await relay.run();
  expect(asked.map(({ limit }) => limit).join(" ")).toBe(limits);
  expect(shown).toEqual(Array.from({ length: countMax }, (_, at) => at));
  expect([relay.cursor, relay.failures]).toEqual([String(countMax), 0]);
});

test.each([
  ["3000/ipn", "http://localhost:3000/ipn"],
  ["3000", "http://localhost:3000/"],
  ["127.0.0.1:3000/ipn", "http://127.0.0.1:3000/ipn"],
  ["https://shop.example/ipn", "https://shop.example/ipn"],
  ["http://shop.example", "insecure_target"],
  ["shop.example:3000/ipn", "insecure_target"],
  ["http://localhost.example", "insecure_target"],
  ["http://127.0.0.1.example", "insecure_target"],
  ["http://me:secret@localhost/", "bad_target"],
  ["ftp://localhost/", "bad_target"],
  ["", "bad_target"],
])("%j is forwarded to as %s", (text, target) => {
  if (target.includes(":")) expect(readTarget(text, false).href).toBe(target);
  else expect(() => readTarget(text, false)).toThrow(expect.objectContaining({ code: target }));
  if (target === "insecure_target") expect(readTarget(text, true).protocol).toBe("http:");
});
