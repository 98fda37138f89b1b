import { openAndVerify } from "@paybell/contract";
import { pino } from "pino";
import { expect, test } from "vitest";
import { systemClock } from "../../clock.ts";
import { newId } from "../../ids.ts";
import { partnerSnapshot } from "../../partners/partner.fixture.ts";
import { KeyExhausted, KeyMissing } from "../../partners/seal-budget.ts";
import { deliveryOf } from "../delivery.fixture.ts";
import type { CallbackPost, PostResult } from "../transport/transport.ts";
import { type AttemptParts, attemptMaker, faultOf } from "./attempt.ts";

const held = { outOfOrder: false, mayWrite: () => true };
const partner = partnerSnapshot({ callBackUrl: "https://callback.test/ipn" });
const accepted = { kind: "accepted" };
const content = JSON.stringify({ kind: "card", command: "SALE", fields: { id: "t-1" } });

function partsOf(more: Partial<AttemptParts> = {}): AttemptParts {
  return {
    transport: { post: nothingMayBeSent },
    seals: { spend: () => undefined },
    contents: { isAsCommitted: () => true },
    reqIdOf: () => Promise.reject(new Error("nothing may be read")),
    clock: systemClock,
    log: pino({ level: "silent" }),
    attemptTimeoutMs: 1_000,
    random: () => 0.5,
    ...more,
  };
}

/** Answers with this result, and records the posts. */
function answering(result: PostResult) {
  const posts: CallbackPost[] = [];
  const post = (posted: CallbackPost) => {
    posts.push(posted);
    return Promise.resolve(result);
  };
  return { posts, transport: { post } };
}

function nothingMayBeSent(): Promise<never> {
  return Promise.reject(new Error("nothing may be sent"));
}

test("an IPN whose lease expired while seals were reserved is not sent, and no attempt is recorded", async () => {
  let isHeld = true;
  const asked: boolean[] = [];
  const attempt = attemptMaker(
    partsOf({
      transport: {
        post: ({ mayWrite }) => {
          asked.push(mayWrite?.() ?? true);
          return Promise.resolve({ notWritten: true });
        },
      },
      seals: {
        spend: async () => {
          await Promise.resolve();
          isHeld = false;
        },
      },
    }),
  );
  const options = { outOfOrder: false, mayWrite: () => isHeld };
  expect(await attempt(deliveryOf(partner.id, { content }), partner, options)).toEqual({ postponeMs: 1_000 });
  expect(asked).toEqual([false]);
});

test("an extended IPN names its original's reqId, and waits while that cannot be read", async () => {
  const extended = partnerSnapshot({ callBackUrl: "https://callback.test/ipn", fields: "extended" });
  const { transport, posts } = answering({ httpStatus: 204, address: "203.0.113.1", answer: null });
  const originalId = newId<"transaction">();
  let reqIdOf: AttemptParts["reqIdOf"] = () => Promise.reject(new Error("the database is away"));
  const attempt = attemptMaker(partsOf({ transport, reqIdOf: (...asked) => reqIdOf(...asked) }));
  const delivery = deliveryOf(extended.id, { content, originalId });
  expect(await attempt(delivery, extended, held)).toEqual({ postponeMs: 1_000 });
  expect(posts).toEqual([]);
  reqIdOf = async (...asked) => {
    expect(asked).toEqual([extended.id, originalId]);
    return "r-0";
  };
  await attempt(delivery, extended, held);
  expect(openedBy(extended, posts[0]?.body)).toMatchObject({ command: "SALE", originalId, originalReqId: "r-0" });
});

function openedBy({ settings, keys }: typeof partner, body: unknown) {
  const how = { sealing: settings, encryptionKeys: [keys.encryption], signingKeys: [keys.signing.key] };
  return openAndVerify(String(body), { ...how, signing: settings.signing, fields: ["extended"] }).ipn;
}

test("an extended IPN has its original's reqId from its content, whose MAC covers it, and nothing is read", async () => {
  const extended = partnerSnapshot({ callBackUrl: "https://callback.test/ipn", fields: "extended" });
  const { transport, posts } = answering({ httpStatus: 204, address: "203.0.113.1", answer: null });
  const attempt = attemptMaker(partsOf({ transport }));
  const withReqId = JSON.stringify({ ...(JSON.parse(content) as object), originalReqId: "r-1" });
  await attempt(deliveryOf(extended.id, { content: withReqId, originalId: newId<"transaction">() }), extended, held);
  expect(openedBy(extended, posts[0]?.body)).toMatchObject({ originalReqId: "r-1" });
});

test.each([
  [null, 410, "retry"],
  [null, 503, "retry"],
  ["https://callback.test/of-the-command", 410, "parked"],
  ["https://callback.test/of-the-command", 503, "retry"],
])("to the command's own URL (%s), %i means: %s", async (callBackUrl, httpStatus, kind) => {
  const { transport } = answering({ httpStatus, address: "203.0.113.1", answer: null });
  const attempt = attemptMaker(partsOf({ transport }));
  expect(await attempt(deliveryOf(partner.id, { content, callBackUrl }), partner, held)).toMatchObject({
    next: { kind },
  });
});

test("a 2xx is an accepted attempt, with its URL and key version", async () => {
  const { transport, posts } = answering({ httpStatus: 204, address: "203.0.113.1", answer: null });
  const attempt = attemptMaker(partsOf({ transport }));
  const made = await attempt(deliveryOf(partner.id, { content, attemptsMade: 2 }), partner, held);
  expect(made).toMatchObject({
    attempt: {
      url: "https://callback.test/ipn",
      address: "203.0.113.1",
      httpStatus: 204,
      reason: null,
      keyId: partner.keys.encryption.id,
    },
    next: { kind: "accepted" },
  });
  expect(posts).toMatchObject([{ url: "https://callback.test/ipn", deadlineMs: 1_000, mayWrite: held.mayWrite }]);
});

test.each([
  [400, [{ deadlineMs: 600 }]],
  [1_000, []],
])("%i ms for sealing are subtracted from the attempt's timeout of a second", async (sealingMs, posted) => {
  let nowMs = 5_000;
  const { transport, posts } = answering({ httpStatus: 204, address: "203.0.113.1", answer: null });
  const clock = { ...systemClock, monotonicMs: () => nowMs };
  const { keys } = partner;
  const sealedSlowly = {
    ...partner,
    keys: {
      ...keys,
      get signing() {
        nowMs += sealingMs;
        return keys.signing;
      },
    },
  };
  const made = await attemptMaker(partsOf({ transport, clock }))(
    deliveryOf(partner.id, { content }),
    sealedSlowly,
    held,
  );
  expect(posts).toMatchObject(posted);
  expect(made).toMatchObject(posted.length === 0 ? { postponeMs: 1_000 } : { attempt: { durationMs: sealingMs } });
});

test("a failure is retried, no sooner than the partner asked; the last one of the schedule parks", async () => {
  const refusal = { httpStatus: 503, address: null, answer: Buffer.from("later"), retryAfterMs: 120_000 };
  const nowMs = 1_750_000_000_000;
  const clock = { nowMs: () => nowMs, monotonicMs: () => 0 };
  const attempt = attemptMaker(partsOf({ transport: answering(refusal).transport, clock }));
  const first = await attempt(deliveryOf(partner.id, { content, scheduleStartMs: nowMs }), partner, held);
  expect(first).toMatchObject({ attempt: { reason: "status", answer: refusal.answer }, retryAfterMs: 120_000 });
  const { next } = first as { next: { kind: string; delayMs: number } };
  expect(next.kind).toBe("retry");
  expect(next.delayMs).toBeGreaterThanOrEqual(120_000);

  const late = deliveryOf(partner.id, { content, attemptsMade: 1_000, scheduleStartMs: nowMs - 1e10 });
  expect(await attempt(late, partner, held)).toMatchObject({ next: { kind: "parked" } });
});

test("without a callback URL, or with an exhausted key, nothing is sent and the attempt says why", async () => {
  const nowhere = partnerSnapshot({ callBackUrl: null });
  expect(await attemptMaker(partsOf())(deliveryOf(nowhere.id, { content }), nowhere, held)).toMatchObject({
    attempt: { url: "", reason: "no_callback_url", httpStatus: null, keyId: null },
  });
  const exhausted = new KeyExhausted(partner.keys.encryption.id);
  const attempt = attemptMaker(partsOf({ seals: { spend: () => Promise.reject(exhausted) } }));
  expect(await attempt(deliveryOf(partner.id, { content }), partner, held)).toMatchObject({
    attempt: { reason: "key_exhausted", detail: exhausted.message },
    next: { kind: "retry" },
  });
});

test("a notification whose content somebody changed is parked unsent; one that was never in the database is sent", async () => {
  const { transport, posts } = answering({ httpStatus: 204, address: "203.0.113.1", answer: null });
  const contents = { isAsCommitted: () => false };
  const [attempt, mac] = [attemptMaker(partsOf({ transport, contents })), Buffer.alloc(17)];
  for (const stored of [mac, null])
    expect(await attempt(deliveryOf(partner.id, { content, mac: stored }), partner, held)).toMatchObject({
      attempt: { reason: "content_changed", keyId: null },
      next: { kind: "parked" },
    });
  expect(posts).toEqual([]);
  expect(await attempt(deliveryOf(partner.id, { content }), partner, held)).toMatchObject({ next: accepted });
  contents.isAsCommitted = () => true;
  expect(await attempt(deliveryOf(partner.id, { content, mac }), partner, held)).toMatchObject({ next: accepted });
});

test("a notification that the service cannot handle has one event for each round, in whichever process", () => {
  const first = deliveryOf(partner.id);
  const again = { ...first, round: 1, scheduleStartMs: first.scheduleStartMs + 60_000.5 };
  const other = { ...deliveryOf(partner.id), scheduleStartMs: first.scheduleStartMs };
  const ids = [first, { ...first, attemptsMade: 3 }, again, other].map((delivery) => faultOf(delivery).id);
  expect(ids[1]).toBe(ids[0]);
  expect(new Set(ids).size).toBe(3);
});

test.each<[Partial<AttemptParts>, string]>([
  [{}, "nothing may be sent"],
  [{ seals: { spend: () => Promise.reject(new KeyMissing("k-7")) } }, "There is no key version k-7"],
])("an internal failure is a failed attempt, and only the log says what failed", async (more, failure) => {
  const lines: string[] = [];
  const log = pino({}, { write: (line) => void lines.push(line) });
  const made = await attemptMaker(partsOf({ log, ...more }))(deliveryOf(partner.id, { content }), partner, held);
  expect(made).toMatchObject({ attempt: { reason: "internal" }, next: { kind: "retry" } });
  expect(JSON.stringify(made)).not.toContain(failure);
  expect(lines.join("")).toContain(failure);
  expect(lines.join("")).not.toContain("database did not answer");
});

test("a database that reserves no seals puts the notification off, and is no attempt", async () => {
  const attempt = attemptMaker(partsOf({ seals: { spend: nothingMayBeSent } }));
  // By then another instance may have it, however old it is.
  const delivery = deliveryOf(partner.id, { content, scheduleStartMs: Date.now() - 60_000 });
  expect(await attempt(delivery, partner, held)).toEqual({ postponeMs: 1_000 });
});

test.each([
  ["a tenth of its age", 60_000, 6_000],
  ["half a minute, however old it is", 86_400_000, 30_000],
])("a notification that our proxy does not connect is put off by %s", async (_, ageMs, postponeMs) => {
  const clock = { ...systemClock, nowMs: () => 1_800_000_000_000 };
  const attempt = attemptMaker(partsOf({ ...answering({ notWritten: "egress" }), clock }));
  const delivery = deliveryOf(partner.id, { content, scheduleStartMs: clock.nowMs() - ageMs });
  expect(await attempt(delivery, partner, held)).toEqual({ postponeMs });
});

test("the last attempt is at the schedule's end, however long the one before took", async () => {
  const startMs = 1_800_000_000_000;
  const times = [startMs + 1_000, startMs + 1_000];
  const clock = { ...systemClock, nowMs: () => times.shift() ?? startMs + 9_000 };
  const parts = partsOf({ ...answering({ reason: "timeout", detail: "", address: null }), clock });
  const short = partnerSnapshot({ callBackUrl: "https://callback.test/ipn", retry: [10] });
  const delivery = deliveryOf(short.id, { content, scheduleStartMs: startMs });
  expect(await attemptMaker(parts)(delivery, short, held)).toMatchObject({ next: { kind: "retry", delayMs: 1_000 } });
});

test("the schedule counts by the database's clock, however wrong the machine's own is", async () => {
  const startMs = 1_800_000_000_000;
  const clockAheadMs = 3_600_000;
  const clock = { ...systemClock, nowMs: () => startMs + 4_000 + clockAheadMs };
  const parts = partsOf({ ...answering({ reason: "timeout", detail: "", address: null }), clock });
  const short = partnerSnapshot({ callBackUrl: "https://callback.test/ipn", retry: [10] });
  const delivery = deliveryOf(short.id, { content, scheduleStartMs: startMs, clockAheadMs });
  expect(await attemptMaker(parts)(delivery, short, held)).toMatchObject({ next: { kind: "retry", delayMs: 6_000 } });
});

test("an attempt counts those of earlier rounds", async () => {
  const { posts, transport } = answering({ httpStatus: 204, answer: null, address: null } as PostResult);
  const delivery = deliveryOf(partner.id, { content, round: 1, attemptsBefore: 3, attemptsMade: 2 });
  await attemptMaker(partsOf({ transport }))(delivery, partner, held);
  expect(posts[0]?.headers).toMatchObject({ "paybell-attempt": "6" });
});
