import type { Clock } from "../../clock.ts";
import { idAt } from "../../ids.ts";
import { callbackUrlOf, isRegistered } from "../../notification.ts";
import type { Partner } from "../../partners/partner.ts";
import { KeyExhausted, KeyMissing, type SealBudget } from "../../partners/seal-budget.ts";
import type { NewEvent } from "../../telemetry/events.ts";
import type { TroubleLog } from "../../telemetry/log.ts";
import { type Attempt, type Delivery, scheduleAgeMs } from "../delivery.ts";
import type { DeliveryOutcome } from "../store.ts";
import { type PostResult, refused, type Transport } from "../transport/transport.ts";
import type { ContentMac } from "./content-mac.ts";
import { makeEnvelope, originalReqIdFor, type ReqIdOf } from "./envelope.ts";
import { nextAttempt, postponementMs } from "./schedule.ts";
import { statusFailure } from "./status.ts";

export interface AttemptParts {
  readonly transport: Pick<Transport, "post">;
  readonly seals: Pick<SealBudget, "spend">;
  readonly contents: Pick<ContentMac, "isAsCommitted">;
  readonly reqIdOf: ReqIdOf;
  readonly clock: Clock;
  readonly log: TroubleLog;
  /** The timeout of everything: connecting, sending, the response. */
  readonly attemptTimeoutMs: number;
  /** From 0 to less than 1. */
  readonly random: () => number;
}

/** The part of a delivery that is reported with its attempt. */
export type AttemptedDelivery = Pick<
  Delivery,
  "partnerId" | "id" | "transactionId" | "command" | "attemptsBefore" | "attemptsMade" | "scheduleStartMs"
>;

/** The result of one attempt. */
export interface AttemptResult {
  readonly attempt: Attempt;
  readonly next: DeliveryOutcome["next"];
  /** The wait that a 429 or 503 asked for. */
  readonly retryAfterMs?: number;
}

export interface AttemptOptions {
  /** It is sent before an earlier one of its chain was accepted. */
  readonly outOfOrder: boolean;
  /** Called again before the first byte is written: whether the lease is still held. */
  readonly mayWrite: () => boolean;
}

/**
 * Makes one POST of a notification. Never rejects: any failure is an attempt with its reason. `postponeMs`: nothing was
 * sent, and no attempt is counted.
 */
export type MakeAttempt = (
  delivery: Delivery,
  partner: Partner,
  options: AttemptOptions,
) => Promise<AttemptResult | { readonly postponeMs: number }>;

/** The event of a notification that the service itself cannot handle: one for each of its rounds. */
export function faultOf({ partnerId, id, scheduleStartMs, attemptsMade }: Delivery): NewEvent {
  const detail = { detail: "The service could not handle it, and tries again; the log says why.", attemptsMade };
  const eventId = idAt<"event">(scheduleStartMs, `delivery_fault ${id}`);
  return { id: eventId, kind: "delivery_fault", partnerId, subjectId: id, detail };
}

/** By then another worker owns the shard, or this one has its lease again. */
const lostLeaseMs = 1_000;
/** The longest wait of a delivery that our proxy does not connect. */
const egressWaitMaxMs = 30_000;

/** `keyId`: the version of the key that sealed it. */
type Tried = PostResult & { readonly keyId?: string };

/** An attempt chooses the URL, signs and seals as the partner is configured now, POSTs, and judges the response. */
export function attemptMaker(parts: AttemptParts): MakeAttempt {
  return async (delivery, partner, options) => {
    const startedAtMs = parts.clock.nowMs();
    const startedMs = parts.clock.monotonicMs();
    const url = callbackUrlOf(delivery, partner.settings);
    const tried = await tryOnce(parts, delivery, partner, url, { ...options, startedMs }).catch(
      (error: unknown): Tried => {
        parts.log.error({ err: error, notification: delivery.id }, "an attempt failed before it was sent");
        return refused("internal", "The attempt failed on our side; the log says why.");
      },
    );
    // The lease expired first, or the proxy fails.
    if ("notWritten" in tried) {
      const isEgress = tried.notWritten === "egress";
      const ageMs = scheduleAgeMs(delivery, startedAtMs);
      return { postponeMs: isEgress ? Math.min(postponementMs(ageMs), egressWaitMaxMs) : lostLeaseMs };
    }
    const answered = "httpStatus" in tried ? tried : undefined;
    const failure = "reason" in tried ? tried : statusFailure(tried.httpStatus);
    const attempt: Attempt = {
      startedAtMs,
      durationMs: parts.clock.monotonicMs() - startedMs,
      url: url ?? "",
      address: tried.address,
      httpStatus: answered?.httpStatus ?? null,
      reason: failure?.reason ?? null,
      detail: failure?.detail ?? null,
      answer: answered?.answer ?? null,
      keyId: tried.keyId ?? null,
    };
    const retryAfterMs = answered?.retryAfterMs;
    const isGone = failure?.reason === "gone" && !isRegistered(partner.settings, attempt.url);
    const isFinal = isGone || failure?.reason === "content_changed";
    const failed = { nowMs: parts.clock.nowMs(), retryAfterMs, isFinal };
    const next = failure === undefined ? accepted : nextAttempt(partner, delivery, failed, parts.random());
    return { attempt, next, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  };
}

const accepted = { kind: "accepted" } as const;

async function tryOnce(
  parts: AttemptParts,
  delivery: Delivery,
  partner: Partner,
  url: string | null,
  { outOfOrder, mayWrite, startedMs }: AttemptOptions & { readonly startedMs: number },
): Promise<Tried> {
  if (url === null) {
    const detail = "There is no callback URL: the command has none, and none is registered for the partner.";
    return refused("no_callback_url", detail);
  }
  if (delivery.mac !== undefined && !parts.contents.isAsCommitted(delivery, delivery.mac)) {
    const detail = "The stored notification is not as it was committed: somebody changed it in the database.";
    return refused("content_changed", detail);
  }
  const keyId = partner.keys.encryption.id;
  let originalReqId: string | undefined;
  try {
    // Without a wait each attempt is sealed as it begins: its duration is without the sealing of those beside it.
    const reading = originalReqIdFor(partner, delivery, parts.reqIdOf);
    if (reading !== undefined) originalReqId = await reading;
    const taken = parts.seals.spend(partner.id, keyId);
    if (taken !== undefined) await taken;
  } catch (error) {
    if (error instanceof KeyExhausted) return refused("key_exhausted", error.message);
    if (error instanceof KeyMissing) throw error;
    // Without the database the attempt could not be recorded either.
    parts.log.warn({ err: error, notification: delivery.id }, "the database did not answer: a notification waits");
    return { notWritten: true };
  }
  const { transport, clock, attemptTimeoutMs: deadlineMs } = parts;
  const attempt = {
    notificationId: delivery.id,
    command: delivery.command,
    originalId: delivery.originalId,
    ...(originalReqId !== undefined && { originalReqId }),
    attemptNo: delivery.attemptsBefore + delivery.attemptsMade + 1,
    callbackUrl: url,
    outOfOrder,
    nowMs: clock.nowMs(),
  };
  const { headers, body } = makeEnvelope(delivery.content, partner, attempt);
  // Sealing a large content, or reserving seals, counts towards the timeout. It is rounded to tenths of a second for
  // people.
  const leftMs = deadlineMs - Math.floor((clock.monotonicMs() - startedMs) / 100) * 100;
  if (leftMs <= 0) return { notWritten: true };
  const result = await transport.post({ partner, url, headers, body, deadlineMs: leftMs, mayWrite });
  return { ...result, keyId };
}
