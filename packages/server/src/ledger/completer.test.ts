import { expect, test } from "vitest";
import { newId } from "../ids.ts";
import type { NewEvent } from "../telemetry/events.ts";
import { Completer, type CompleterParts } from "./completer.ts";
import type { Completed, Transaction } from "./store.ts";

test.each([
  ["once its result is durable", { outcome: "completed", atMs: 1 }, 1],
  ["never if its result is late", { outcome: "late" }, 0],
] as const)("a notification is passed on %s", async (_, completed, count) => {
  const passedOn: unknown[] = [];
  const written = Promise.withResolvers<Completed>();
  const counts = { inc: () => undefined };
  const completer = new Completer({
    completions: { complete: () => written.promise },
    directory: { cached: () => undefined },
    notifier: { notify: (notification: unknown) => void passedOn.push(notification) },
    metrics: { commands: counts, notificationsCreated: counts },
  } as unknown as CompleterParts);
  const begun = { partnerId: newId(), id: newId(), command: "SALE" } as unknown as Transaction;
  const facts = { kind: "card", command: "SALE", fields: {} } as never;
  const ended = completer.complete(begun, { state: "SUCCESS", facts }, newId());
  expect(passedOn).toEqual([]);
  written.resolve(completed);
  await ended;
  expect(passedOn).toHaveLength(count);
});

test("a field that was sent with a delimiter is an event of its transaction", async () => {
  const events: NewEvent[] = [];
  const completer = new Completer({
    completions: { complete: async () => ({ outcome: "completed", atMs: 1 }) },
    events: { record: (event: NewEvent) => void events.push(event) },
    metrics: { commands: { inc: () => undefined } },
  } as unknown as CompleterParts);
  const begun = { partnerId: newId(), id: newId(), command: "SALE", acquirer: "first" } as unknown as Transaction;
  const warnings = [{ field: "billId", code: "delimiter" as never, message: "It has a delimiter." }];
  const result = { state: "SUCCESS", facts: { kind: "card", fields: {} } as never, warnings, silent: true } as const;
  await completer.complete(begun, result, newId());
  expect(events).toMatchObject([
    {
      kind: "delimiter_sent",
      partnerId: begun.partnerId,
      subjectId: begun.id,
      detail: { fields: warnings, acquirer: "first" },
    },
  ]);
});
