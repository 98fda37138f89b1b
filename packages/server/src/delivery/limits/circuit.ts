import { jitter, retryAfterMaxMs } from "../attempt/schedule.ts";
import type { Attempt, FailureReason } from "../delivery.ts";

/*
 * The circuit breaker of an endpoint: of everything that one origin hosts for a partner, or of one registered URL.
 *
 * ```
 * closed ──(5 failures in a row)──► open ──(any response)──► closed
 *                                   open ──(a probe fails)──► open, and the next probe waits twice as long
 * closed, open ──(410 of a registered URL)──► gone ──(closed by a person)──► closed
 * ```
 *
 * While it is open, one delivery at its time is the probe. A person may close it, or have it probed at once. The owner
 * of the shard decides in memory, and writes each change with the outcome that caused it, unless a person has changed
 * the circuit since, or a later owner has. A closed circuit is stored only if a person has changed it.
 */

/** Failures in a row that trip a circuit. */
const failuresToTrip = 5;
/** The wait before the first probe. It doubles with each probe that fails. */
const probeStepMs = 5_000;
const probeStepMaxMs = 300_000;

/** The limits above, for those who wait for them. */
export const circuitLimits = { failuresToTrip, probeStepMs, probeStepMaxMs };

/**
 * The meaning of an attempt for the endpoint. `lives`: it responded. `fails`: it did not, or its response says that it
 * cannot process (429, 5xx). `gone`: 410. `nothing`: the attempt never reached it.
 */
export type Effect = "lives" | "fails" | "gone" | "nothing";

// A name that does not resolve, a reset and a response that is not HTTP count as failures. Tripping a circuit too early
// costs seconds; continuing to POST to a dead endpoint costs everybody slots.
const effects: Readonly<Record<Exclude<FailureReason, "status">, Effect>> = {
  dns: "fails",
  // As a name that does not resolve: partners see which endpoints failed, and must not learn which names exist.
  address_refused: "fails",
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
  key_exhausted: "nothing",
  content_changed: "nothing",
  egress: "nothing",
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
  /** Consecutive failures. */
  readonly failures: number;
  /** Failed probes since it tripped. */
  readonly probes: number;
  /** The time until one delivery may probe it; null while it is not tripped. */
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

/** The result of one attempt, for the circuit breaker. */
export interface EndpointSignal {
  readonly effect: Exclude<Effect, "nothing">;
  readonly reason: FailureReason | null;
  /** The wait that a 429 or 503 asked for. */
  readonly retryAfterMs: number | null;
  /** It was the delivery that probed a tripped circuit. */
  readonly isProbe: boolean;
}

/** Returns the circuit after one attempt. @param random from 0 to less than 1 */
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
  // Attempts in flight when it tripped fail as well. Only a probe delays the next one, or a server that asks for time.
  const probes = signal.isProbe ? circuit.probes + 1 : circuit.probes;
  const waitMs = signal.isProbe ? probeWaitMs(probes, random) : (circuit.probeInMs ?? 0);
  return { ...circuit, failures, probes, lastReason, probeInMs: Math.max(waitMs, askedMs) };
}

/** The wait before the next probe after `probes` failed ones, ± 15 %. */
export function probeWaitMs(probes: number, random: number): number {
  const stepMs = Math.min(probeStepMs * 2 ** Math.min(probes, 16), probeStepMaxMs);
  return stepMs * (1 - jitter + 2 * jitter * random);
}
