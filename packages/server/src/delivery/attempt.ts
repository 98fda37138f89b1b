import type { Logger } from "pino";
import type { Clock } from "../clock.ts";
import type { Lease } from "../instance.ts";
import type { Partner } from "../partners/partner.ts";
import { KeyExhausted, type SealBudget } from "../partners/seal-budget.ts";
import type { Attempted, Attempting } from "./dispatcher.ts";
import { nextAttempt, statusFailure } from "./schedule.ts";
import type { EnvelopeFor } from "./sending/envelope.ts";
import { SealingQueueFull, type SealingWorker } from "./sending/sealing-worker.ts";
import { LeaseLost, type Sender } from "./sending/sender.ts";
import type { Attempt, Claimed, FailureReason } from "./store.ts";
import { callbackUrlOf } from "./target.ts";
import type { PostResult } from "./transport/transport.ts";

export interface AttemptParts {
  readonly sender: Pick<Sender, "send" | "post">;
  readonly seals: Pick<SealBudget, "take">;
  readonly sealingWorker: Pick<SealingWorker, "isLarge" | "makeLarge">;
  readonly lease: Lease;
  readonly clock: Clock;
  readonly log: Logger;
  /** For everything: connecting, sending, the answer. */
  readonly attemptTimeoutMs: number;
  /** From 0 to less than 1. */
  readonly random: () => number;
}

/** By then some of what waits to be sealed is. */
const putOffMs = 1_000;

interface Failure {
  readonly reason: FailureReason;
  readonly detail: string;
}

/**
 * Makes one attempt: chooses the URL, signs and seals as the partner agreed to receive it now, POSTs, and judges the
 * answer.
 */
export function attempting(parts: AttemptParts): Attempting {
  return async (claimed, partner) => {
    const startedAtMs = parts.clock.nowMs();
    const startedMs = parts.clock.monotonicMs();
    const url = callbackUrlOf(claimed, partner);
    const tried = await tryOnce(parts, claimed, partner, url, startedAtMs).catch((error: unknown) => {
      if (error instanceof SealingQueueFull || error instanceof LeaseLost) return error;
      parts.log.error({ err: error, notification: claimed.id }, "an attempt broke before it left");
      return { failure: { reason: "internal", detail: "The attempt broke on our side; the log says why." } } as Tried;
    });
    if (tried instanceof Error) {
      const { id, content } = claimed;
      const why = tried instanceof LeaseLost ? tried.message : "too much waits to be sealed";
      parts.log.warn({ notification: id, chars: content.length }, `${why}: put off`);
      return { putOffMs };
    }
    const { result, failure, keyId } = tried;
    const durationMs = parts.clock.monotonicMs() - startedMs;
    const attempt: Attempt = {
      startedAtMs,
      durationMs,
      url: url ?? "",
      address: result?.address ?? null,
      httpStatus: result !== undefined && "httpStatus" in result ? result.httpStatus : null,
      reason: failure?.reason ?? null,
      detail: failure?.detail ?? null,
      answer: result !== undefined && "httpStatus" in result ? result.answer : null,
      keyId: keyId ?? null,
    };
    const asked = result !== undefined && "httpStatus" in result ? result.retryAfterMs : undefined;
    return {
      attempt,
      next: failure === undefined ? { kind: "accepted" } : next(parts, claimed, partner, result),
      ...(asked !== undefined && { retryAfterMs: asked }),
    };
  };
}

interface Tried {
  readonly result?: PostResult;
  readonly failure?: Failure;
  readonly keyId?: string;
}

async function tryOnce(
  parts: AttemptParts,
  claimed: Claimed,
  partner: Partner,
  url: string | null,
  nowMs: number,
): Promise<Tried> {
  if (url === null) {
    const detail = "There is no callback URL: the command brought none, and none is registered for the partner.";
    return { failure: { reason: "no_callback_url", detail } };
  }
  try {
    await parts.seals.take(partner.id, partner.keys.encryption.id);
  } catch (error) {
    if (!(error instanceof KeyExhausted)) throw error;
    return { failure: { reason: "key_exhausted", detail: error.message } };
  }
  const attempt = {
    notificationId: claimed.id,
    command: claimed.command,
    originalId: claimed.originalId,
    attemptNo: claimed.attemptsMade + 1,
    callbackUrl: url,
    outOfOrder: claimed.outOfOrder,
    nowMs,
  };
  const keyId = partner.keys.encryption.id;
  const result = await send(parts, claimed.content, partner, attempt);
  const failure = "reason" in result ? result : statusFailure(result.httpStatus);
  return failure === undefined ? { result, keyId } : { result, failure, keyId };
}

async function send(
  { sender, sealingWorker, lease, clock, attemptTimeoutMs: deadlineMs }: AttemptParts,
  content: string,
  partner: Partner,
  attempt: EnvelopeFor,
): Promise<PostResult> {
  const startBeforeMs = () => clock.monotonicMs() + lease.remainingMs();
  if (!sealingWorker.isLarge(content)) {
    return sender.send({ partner, content, attempt, deadlineMs, startBeforeMs: startBeforeMs() });
  }
  const epoch = lease.current()?.epoch;
  const envelope = await sealingWorker.makeLarge(content, partner, attempt);
  // It may have waited longer than a lease stands.
  if (lease.current()?.epoch !== epoch) throw new LeaseLost();
  return sender.post({ partner, envelope, url: attempt.callbackUrl, deadlineMs, startBeforeMs: startBeforeMs() });
}

function next(parts: AttemptParts, claimed: Claimed, partner: Partner, result?: PostResult): Attempted["next"] {
  const failed = {
    attemptsMade: claimed.attemptsMade + 1,
    scheduleStartMs: claimed.scheduleStartMs,
    nowMs: parts.clock.nowMs(),
    retryAfterMs: result !== undefined && "httpStatus" in result ? result.retryAfterMs : undefined,
  };
  return nextAttempt(partner.settings.retry, failed, parts.random());
}
