/**
 * The states of a stop. Each lasts until what it waits for has happened:
 *
 * ```
 * serving ──(stop)──► leaving ──(the notice is over)──► draining ──(nothing waits for an acquirer)──► closing
 * ```
 *
 * - leaving: everything is accepted, but `/healthz` and `/readyz` answer 503, and each answer ends its connection, so
 *   that proxies stop using this instance before it refuses anything.
 * - draining: a new command is refused before anything is written. What runs ends, at the latest after the acquirer's
 *   timeout and 5 s.
 * - closing: links, deliveries, listeners, lease and database, in this order.
 *
 * Without the database nothing can be recorded, and other instances take over what runs: then nothing is waited for.
 */
export interface StopParts {
  /** Milliseconds for which the lease is certainly held. */
  readonly leaseMs: () => number;
  /** 0: nobody has to notice. */
  readonly noticeMs: number;
  readonly drainMs: number;
  readonly onTrouble: (error: unknown) => void;
  /** Resolves when nothing waits for an acquirer. New commands are refused from now on. */
  drain(): Promise<unknown>;
  /** One after the other. */
  readonly closing: readonly (() => unknown)[];
  /** The last ones, after which there is no lease. */
  readonly released: readonly (() => unknown)[];
}

/** A lease lasts for 5 s after the last answered beat: the database has not answered for 3.5 s then. */
const leaseEndsMs = 1_500;
/** The time of a step that needs no database, when there is none. */
const aloneMs = 250;
const lookEveryMs = 50;

export async function stopInOrder(parts: StopParts): Promise<void> {
  const { noticeMs, drainMs, onTrouble, drain, closing, released } = parts;
  const isAlone = () => parts.leaseMs() < leaseEndsMs;
  const never = new Promise(() => undefined);
  const wait = (step: () => unknown, lost: () => boolean, atMostMs?: number) =>
    whileHeld(step, lost, atMostMs).catch(onTrouble);
  if (noticeMs > 0 && !isAlone()) await wait(() => never, isAlone, noticeMs);
  await wait(drain, isAlone, drainMs);
  for (const step of closing) await wait(step, isAlone);
  const wasAlone = isAlone();
  for (const step of released) await wait(step, () => wasAlone);
}

/** Resolves with the step's end, or without it after `atMostMs`, or once the lease has been lost for `aloneMs`. */
async function whileHeld(
  step: () => unknown,
  isLost: () => boolean,
  atMostMs = Number.POSITIVE_INFINITY,
): Promise<void> {
  const startedMs = performance.now();
  let lostMs: number | undefined;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    // An instance that stood still looks before it reads the answer to its beat.
    lostMs = isLost() ? (lostMs ?? nowMs) : undefined;
    const isOver = lostMs !== undefined && nowMs - lostMs >= aloneMs;
    if (isOver || nowMs - startedMs >= atMostMs) resolve();
  }, lookEveryMs);
  try {
    await Promise.race([step(), promise]);
  } finally {
    clearInterval(timer);
  }
}
