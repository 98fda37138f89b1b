import { expect, onTestFinished, test, vi } from "vitest";
import { type LeaseId, newId } from "../../ids.ts";
import type { Log } from "../../log.ts";
import { partnerSnapshot } from "../../partners/partner.fixture.ts";
import type { Partner } from "../../partners/partner.ts";
import { deliveryOf } from "../delivery.fixture.ts";
import type { FromWorker, ToWorker } from "./messages.ts";
import { restartMs, type SupervisorOptions, silentMs, WorkerSupervisor } from "./supervisor.ts";
import type { ThreadData } from "./supervisor-thread.fixture.ts";

/** Longer than a test may take: nothing here assumes how fast a thread is. */
const waitFor = { timeout: 600_000, interval: 5 };

/** A supervisor of the fixture's thread, the messages to the thread, and all events in order. */
async function supervising(more: Partial<SupervisorOptions> = {}) {
  const leases = Array.from({ length: 3 }, () => newId<"lease">());
  const data: ThreadData = { leases, starts: new SharedArrayBuffer(4) };
  const told: ToWorker[] = [];
  const happened: string[] = [];
  const timers = new Set<{ readonly ms: number; readonly work: () => void }>();
  /** Ends the one wait of this length. */
  const elapse = (ms: number) => {
    const due = [...timers].filter((timer) => timer.ms === ms);
    expect(due).toHaveLength(1);
    for (const timer of due) {
      timers.delete(timer);
      timer.work();
    }
  };
  const log = {
    info: ({ message }: { message: ToWorker }) => void told.push(message),
    warn: (_: object, text: string) => void happened.push(text),
    error: (_: object, text: string) => void happened.push(text),
  };
  const supervisor = new WorkerSupervisor({
    entry: new URL("./supervisor-thread.fixture.ts", import.meta.url),
    data,
    name: "a delivery worker of a test",
    log: log as unknown as Log,
    findPartner: () => Promise.reject(new Error("nobody is known")),
    removeLease: (id: LeaseId) => {
      happened.push(`lease ${leases.indexOf(id)} removed`);
      return Promise.resolve();
    },
    onMessage: () => undefined,
    timers: {
      after(ms, work) {
        const timer = { ms, work };
        timers.add(timer);
        return () => void timers.delete(timer);
      },
    },
    ...more,
  });
  onTestFinished(async () => void (await supervisor.stop(1_000)));
  supervisor.start();
  const partnerId = newId<"partner">();
  await vi.waitFor(() => expect(supervisor.owns(partnerId)).toBe(true), waitFor);
  const hint = (queue: string) => supervisor.hint({ partnerId, queue });
  const deliveries = () => told.flatMap((message) => message.deliveries);
  const hints = () => told.flatMap((message) => message.hints);
  /** Resolves when the thread has answered everything sent before. */
  const settled = async () => {
    const mark = newId();
    hint(mark);
    await vi.waitFor(() => expect(hints().some(({ queue }) => queue === mark)).toBe(true), waitFor);
  };
  return { supervisor, partnerId, told, happened, elapse, hint, hints, deliveries, settled };
}

test("a thread that fails keeps its lease until it has ended; then another begins under another lease", async () => {
  const { supervisor, partnerId, happened, elapse, hint, settled } = await supervising();
  hint("throw");
  await vi.waitFor(() => expect(happened).toHaveLength(3), waitFor);
  // A worker that took over at the error could collide with an attempt of the thread that is still running.
  expect(happened).toEqual([
    "a delivery worker failed",
    "lease 0 removed",
    "a delivery worker ended; another is started",
  ]);
  expect(supervisor.owns(partnerId)).toBe(false);
  elapse(restartMs);
  await vi.waitFor(() => expect(supervisor.owns(partnerId)).toBe(true), waitFor);
  await settled();
  await supervisor.end();
  await vi.waitFor(() => expect(happened).toContain("lease 1 removed"), waitFor);
});

test("a thread that is silent for too long is ended, and only then its lease is removed", async () => {
  const { happened, elapse, hint, hints } = await supervising();
  hint("block");
  await vi.waitFor(() => expect(hints().map(({ queue }) => queue)).toContain("block"), waitFor);
  elapse(silentMs);
  await vi.waitFor(() => expect(happened).toContain("lease 0 removed"), waitFor);
  expect(happened.slice(0, 2)).toEqual(["a delivery worker is stuck; its thread is ended", "lease 0 removed"]);
});

test("a thread that stops reports its running attempts, and is not started again", async () => {
  const { supervisor, happened, told } = await supervising();
  expect(await supervisor.stop(1_234)).toBe(3);
  expect(told.at(-1)?.stopWithinMs).toBe(1_234);
  expect(await supervisor.stop(1_234)).toBe(3);
  expect(happened).toEqual([]);
});

test("rows are offered in one message per turn, up to the credit; beyond it their queues are named", async () => {
  const { supervisor, partnerId, told, hint, hints, deliveries, settled } = await supervising();
  const offer = (queue: string) => supervisor.offer(deliveryOf(partnerId, { queue }), 0);
  for (let nth = 0; nth < 4_096; nth += 1) offer("within");
  offer("beyond");
  await settled();
  expect(deliveries()).toHaveLength(4_096);
  expect(told.filter((message) => message.deliveries.length > 0)).toHaveLength(1);
  expect(hints().map(({ queue }) => queue)).toContain("beyond");
  hint("take one");
  await settled();
  offer("taken in");
  offer("beyond again");
  await settled();
  expect(deliveries().at(-1)).toMatchObject({ queue: "taken in" });
  expect(deliveries()).toHaveLength(4_097);
  expect(hints().map(({ queue }) => queue)).toContain("beyond again");
});

test("hints beyond their credit are dropped, and the thread looks at everything when it has room", async () => {
  const { told, hint, hints } = await supervising();
  hint("hear all");
  for (let nth = 0; nth < 4_200; nth += 1) hint(`https://p${nth}.example`);
  await vi.waitFor(() => expect(told.flatMap(({ news }) => news)).toEqual(["due"]), waitFor);
  expect(hints()).toHaveLength(4_096);
  hint("https://later.example");
  await vi.waitFor(() => expect(hints()).toHaveLength(4_097), waitFor);
  expect(told.flatMap(({ news }) => news)).toEqual(["due"]);
});

test("content beyond the credit of bytes is left to be read", async () => {
  const { supervisor, partnerId, hints, deliveries, settled } = await supervising();
  supervisor.offer(deliveryOf(partnerId, { queue: "large", bytes: 20 * 1_024 * 1_024 }), 0);
  supervisor.offer(deliveryOf(partnerId, { queue: "too much", bytes: 20 * 1_024 * 1_024 }), 0);
  supervisor.offer(deliveryOf(partnerId, { queue: "small" }), 0);
  await settled();
  expect(deliveries().map(({ queue }) => queue)).toEqual(["large", "small"]);
  expect(hints().map(({ queue }) => queue)).toContain("too much");
});

test("rows of a queue that the thread reads for itself are kept back until it has caught up", async () => {
  const { supervisor, partnerId, hint, hints, deliveries, settled } = await supervising();
  hint("behind");
  await settled();
  await settled();
  supervisor.offer(deliveryOf(partnerId, { scheduleStartMs: 2_000 }), 0);
  supervisor.offer(deliveryOf(partnerId, { queue: "https://a.example" }), 0);
  supervisor.offer(deliveryOf(partnerId, { scheduleStartMs: 1_000 }), 0);
  const other = deliveryOf(newId<"partner">());
  supervisor.offer(other, 0);
  await settled();
  expect(deliveries()).toMatchObject([{ queue: "https://a.example" }, { id: other.id }]);
  hint("caught up");
  await vi.waitFor(() => expect(hints()).toContainEqual({ partnerId, queue: "", sinceMs: 1_000 }), waitFor);
  expect(hints().filter(({ queue }) => queue === "")).toHaveLength(1);
  supervisor.offer(deliveryOf(partnerId), 0);
  await settled();
  expect(deliveries()).toHaveLength(3);
});

test("partners are sent when they are requested or have changed, and as `same` if unchanged", async () => {
  const state: { partner: Partner; confirmedMs: number } = { partner: partnerSnapshot(), confirmedMs: 1 };
  const { supervisor, partnerId, told, hint, settled } = await supervising({
    findPartner: () => Promise.resolve({ ...state }),
  });
  const answers = () => told.flatMap((message) => message.partners);
  // It was not requested.
  supervisor.partnerChanged(partnerId);
  await settled();
  expect(answers()).toEqual([]);
  hint("ask");
  await vi.waitFor(() => expect(answers()).toHaveLength(1), waitFor);
  expect(answers()[0]).toMatchObject({ id: partnerId, partner: { id: state.partner.id }, confirmedMs: 1 });
  state.confirmedMs = 2;
  hint("ask again");
  await vi.waitFor(() => expect(answers()).toHaveLength(2), waitFor);
  expect(answers()[1]).toEqual({ id: partnerId, partner: "same", confirmedMs: 2 });
  state.partner = partnerSnapshot();
  supervisor.partnerChanged(partnerId);
  await vi.waitFor(() => expect(answers()).toHaveLength(3), waitFor);
  expect(answers()[2]).toMatchObject({ partner: { id: state.partner.id } });
});

test("a partner that cannot be read now is not answered: the thread's copy gets old", async () => {
  const { told, hint, settled } = await supervising();
  hint("ask");
  await settled();
  await settled();
  expect(told.flatMap((message) => message.partners)).toEqual([]);
});

test("messages of the thread are passed on, and news is sent once per turn", async () => {
  const messages: FromWorker[] = [];
  const { supervisor, told, settled } = await supervising({ onMessage: (message) => void messages.push(message) });
  for (const news of ["shards", "due", "shards"] as const) supervisor.notify(news);
  await settled();
  expect(told.flatMap((message) => message.news)).toEqual(["shards", "due"]);
  expect(messages[0]?.shards).toHaveLength(256);
});

test("a lease runs out by its last report though the thread says nothing more", async () => {
  const { supervisor, hint, settled } = await supervising();
  expect(supervisor.leaseMs()).toBeLessThanOrEqual(0);
  hint("hold a lease");
  await settled();
  const heldMs = supervisor.leaseMs();
  expect(heldMs).toBeGreaterThan(0);
  expect(heldMs).toBeLessThanOrEqual(600_000);
  await vi.waitFor(() => expect(supervisor.leaseMs()).toBeLessThan(heldMs), waitFor);
  await supervisor.end();
  await vi.waitFor(() => expect(supervisor.leaseMs()).toBeLessThanOrEqual(0), waitFor);
});
