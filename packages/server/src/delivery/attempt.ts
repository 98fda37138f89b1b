import type { Clock } from "../clock.ts";
import { newId } from "../ids.ts";
import type { TroubleLog } from "../log.ts";
import type { Partner } from "../partners/partner.ts";
import { KeyExhausted, type SealBudget } from "../partners/seal-budget.ts";
import type { Attempting, AttemptOptions } from "./attempting.ts";
import { callbackUrlOf } from "./callback-url.ts";
import { nextAttempt, statusFailure } from "./schedule.ts";
import { makeEnvelope } from "./sending/envelope.ts";
import { SealingQueueFull, type SealingWorker } from "./sending/sealing-worker.ts";
import type { Attempt, Delivery, DeliveryOutcome, FailureReason } from "./store.ts";
import type { PostResult, Transport } from "./transport/transport.ts";

export interface AttemptParts {
  readonly transport: Pick<Transport, "post">;
  readonly seals: Pick<SealBudget, "spend">;
  readonly sealingWorker: Pick<SealingWorker, "isLarge" | "makeLarge">;
  readonly clock: Clock;
  readonly log: TroubleLog;
  /** The timeout of everything: connecting, sending, the response. */
  readonly attemptTimeoutMs: number;
  /** From 0 to less than 1. */
  readonly random: () => number;
}

/** By then part of the sealing queue is done. */
const putOffMs = 1_000;

interface Tried {
  readonly result?: PostResult;
  readonly failure?: { readonly reason: FailureReason; readonly detail: string };
  readonly keyId?: string;
}

/**
 * Returns the function that makes one attempt: it chooses the URL, signs and seals as the partner is configured now,
 * POSTs, and judges the response.
 */
export function attempting(parts: AttemptParts): Attempting {
  return async (delivery, partner, options) => {
    const startedAtMs = parts.clock.nowMs();
    const startedMs = parts.clock.monotonicMs();
    const url = callbackUrlOf(delivery, partner);
    const tried = await tryOnce(parts, delivery, partner, url, { ...options, startedMs }).catch((error: unknown) => {
      if (error instanceof SealingQueueFull) return { result: { notWritten: true } } as Tried;
      parts.log.error({ err: error, notification: delivery.id }, "an attempt broke before it left");
      return { failure: { reason: "internal", detail: "The attempt broke on our side; the log says why." } } as Tried;
    });
    const { result, failure, keyId } = tried;
    // The lease expired first, or the sealing queue is full.
    if (result !== undefined && "notWritten" in result) return { putOffMs };
    const answered = result !== undefined && "httpStatus" in result ? result : undefined;
    const attempt: Attempt = {
      startedAtMs,
      durationMs: parts.clock.monotonicMs() - startedMs,
      url: url ?? "",
      address: result?.address ?? null,
      httpStatus: answered?.httpStatus ?? null,
      reason: failure?.reason ?? null,
      detail: failure?.detail ?? null,
      answer: answered?.answer ?? null,
      keyId: keyId ?? null,
    };
    const next = failure === undefined ? accepted : nextAfterFailure(parts, delivery, partner, answered?.retryAfterMs);
    return { attempt, next, ...(answered?.retryAfterMs !== undefined && { retryAfterMs: answered.retryAfterMs }) };
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
    const detail = "There is no callback URL: the command brought none, and none is registered for the partner.";
    return { failure: { reason: "no_callback_url", detail } };
  }
  const keyId = partner.keys.encryption.id;
  try {
    const taken = parts.seals.spend(partner.id, keyId);
    if (taken !== undefined) await taken;
  } catch (error) {
    if (!(error instanceof KeyExhausted)) throw error;
    return { failure: { reason: "key_exhausted", detail: error.message } };
  }
  const { sealingWorker, transport, clock, attemptTimeoutMs: deadlineMs } = parts;
  const attempt = {
    notificationId: delivery.id,
    command: delivery.command,
    originalId: delivery.originalId,
    attemptNo: delivery.attemptsBefore + delivery.attemptsMade + 1,
    callbackUrl: url,
    outOfOrder,
    nowMs: clock.nowMs(),
  };
  const { content } = delivery;
  const { headers, body } = sealingWorker.isLarge(content)
    ? await sealingWorker.makeLarge(content, partner, attempt)
    : makeEnvelope(content, partner, attempt);
  // Sealing a large content, or reserving seals, counts towards the timeout. It is rounded to tenths of a second for
  // people.
  const leftMs = deadlineMs - Math.floor((clock.monotonicMs() - startedMs) / 100) * 100;
  if (leftMs <= 0) return { result: { notWritten: true } };
  const result = await transport.post({ partner, url, headers, body, deadlineMs: leftMs, mayWrite });
  if ("notWritten" in result) return { result };
  const failure = "reason" in result ? result : statusFailure(result.httpStatus);
  return failure === undefined ? { result, keyId } : { result, failure, keyId };
}

function nextAfterFailure(
  parts: AttemptParts,
  delivery: Delivery,
  partner: Partner,
  retryAfterMs: number | undefined,
): DeliveryOutcome["next"] {
  const failed = {
    attemptsMade: delivery.attemptsMade + 1,
    scheduleStartMs: delivery.scheduleStartMs,
    nowMs: parts.clock.nowMs(),
    pauses: partner.pauses,
    retryAfterMs,
  };
  const next = nextAttempt(partner.settings.retry, failed, parts.random());
  return next.kind === "parked" ? { kind: "parked", eventId: newId<"event">() } : next;
}
