import { jitter, retryAfterMaxMs } from "./schedule.ts";
import type { Attempt, FailureReason } from "./store.ts";

/** Failures in a row that trip a circuit. */
export const failuresToTrip = 5;
/** The wait before the first probe. It doubles with each probe that fails. */
export const probeStepMs = 5_000;
export const probeStepMaxMs = 300_000;

/**
 * What an attempt says about the endpoint. `lives`: it answered. `fails`: it did not, or its answer says that it cannot
 * (429, 5xx). `gone`: 410. `nothing`: the attempt never reached it.
 */
export type Effect = "lives" | "fails" | "gone" | "nothing";

// A name that does not resolve, a reset and an answer that is not HTTP count as failures. Tripping a circuit too early
// costs seconds; going on to POST to a dead endpoint costs everybody slots.
const effects: Readonly<Record<Exclude<FailureReason, "status">, Effect>> = {
  dns: "fails",
  connect: "fails",
  connect_timeout: "fails",
  tls: "fails",
  timeout: "fails",
  reset: "fails",
  bad_response: "fails",
  rate_limited: "fails",
  redirect: "lives",
  too_large: "lives",
  gone: "gone",
  no_callback_url: "nothing",
  address_refused: "nothing",
  key_exhausted: "nothing",
  internal: "nothing",
};

export function effectOf({ reason, httpStatus }: Pick<Attempt, "reason" | "httpStatus">): Effect {
  if (reason === null) return "lives";
  if (reason === "status") return (httpStatus ?? 500) >= 500 ? "fails" : "lives";
  return effects[reason];
}

export type CircuitState = "closed" | "open" | "gone";

/** The circuit breaker of one endpoint. `open`: tripped. */
export interface Circuit {
  readonly state: CircuitState;
  /** In a row. */
  readonly failures: number;
  /** Probes that failed since it tripped. */
  readonly probes: number;
  /** Until one delivery may probe it; null while it is not tripped. */
  readonly probeInMs: number | null;
  readonly lastReason: FailureReason | null;
}

export const closedCircuit: Circuit = {
  state: "closed",
  failures: 0,
  probes: 0,
  probeInMs: null,
  lastReason: null,
};

/** One attempt as the circuit breaker sees it. */
export interface EndpointSignal {
  readonly effect: Exclude<Effect, "nothing">;
  readonly reason: FailureReason | null;
  /** What a 429 or 503 asked to wait. */
  readonly retryAfterMs: number | null;
  /** It was the one delivery that probed a tripped circuit. */
  readonly isProbe: boolean;
}

/**
 * The circuit after one attempt.
 *
 * ```
 * closed ──(5 failures in a row)──► open ──(anything that answers)──► closed
 * open ──(a probe fails)──► open, and the next probe waits twice as long
 * closed, open ──(410)──► gone ──(by hand alone)──► closed
 * ```
 *
 * @param random from 0 to less than 1
 */
export function afterSignal(circuit: Circuit, signal: EndpointSignal, random: number): Circuit {
  const { effect, reason: lastReason } = signal;
  if (circuit.state === "gone") return circuit;
  if (effect === "gone") return { ...circuit, state: "gone", lastReason, probeInMs: null };
  if (effect === "lives") return { ...closedCircuit, lastReason: circuit.lastReason };
  const failures = circuit.failures + 1;
  if (circuit.state === "closed" && failures < failuresToTrip) return { ...circuit, failures, lastReason };
  const askedMs = Math.min(signal.retryAfterMs ?? 0, retryAfterMaxMs);
  if (circuit.state === "closed") {
    const probeInMs = Math.max(probeWaitMs(0, random), askedMs);
    return { state: "open", failures, probes: 0, probeInMs, lastReason };
  }
  // What was in flight when it tripped fails as well: only a probe moves the next one, or a server that asks for time.
  const probes = signal.isProbe ? circuit.probes + 1 : circuit.probes;
  const waitMs = signal.isProbe ? probeWaitMs(probes, random) : (circuit.probeInMs ?? 0);
  return { ...circuit, failures, probes, lastReason, probeInMs: Math.max(waitMs, askedMs) };
}

/** How long to wait for the next probe after `probes` that failed, ± 15 %. */
export function probeWaitMs(probes: number, random: number): number {
  const stepMs = Math.min(probeStepMs * 2 ** Math.min(probes, 16), probeStepMaxMs);
  return stepMs * (1 - jitter + 2 * jitter * random);
}
