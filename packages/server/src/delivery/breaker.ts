import { jitter, retryAfterMaxMs } from "./schedule.ts";
import type { Attempt, FailureReason } from "./store.ts";

/** Failures in a row, of all instances together, that open an endpoint. */
export const failuresToOpen = 5;
/** The wait before the first probe. It doubles with each that fails. */
export const probeStepMs = 5_000;
export const probeStepMaxMs = 300_000;

/**
 * What an attempt tells of the endpoint: it `lives` when it answered at all, and `fails` when it did not, or said
 * itself that it cannot (429, 5xx). `gone` is a 410. `nothing`: it never came to the endpoint.
 */
export type Sign = "lives" | "fails" | "gone" | "nothing";

// A name that does not resolve, a reset and an answer that is not HTTP count: nothing arrives there, whoever is to
// blame, and to open one queue too early costs seconds, to keep on POSTing into a dead one costs everybody slots.
const signs: Readonly<Record<Exclude<FailureReason, "status">, Sign>> = {
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

export function signOf({ reason, httpStatus }: Pick<Attempt, "reason" | "httpStatus">): Sign {
  if (reason === null) return "lives";
  if (reason === "status") return (httpStatus ?? 500) >= 500 ? "fails" : "lives";
  return signs[reason];
}

export type EndpointState = "closed" | "open" | "gone";

/** Where an endpoint stands, of which nothing is known but what its failures told. */
export interface EndpointStanding {
  readonly state: EndpointState;
  /** In a row. */
  readonly failures: number;
  /** Since it is open. */
  readonly probes: number;
  /** Until one delivery may try it again, below 0 when that is over; null while it is not open. */
  readonly probeInMs: number | null;
  readonly lastReason: FailureReason | null;
}

export const unknownEndpoint: EndpointStanding = {
  state: "closed",
  failures: 0,
  probes: 0,
  probeInMs: null,
  lastReason: null,
};

/** One attempt as the breaker sees it. */
export interface Sighting {
  readonly sign: Exclude<Sign, "nothing">;
  readonly reason: FailureReason | null;
  /** What a 429 or 503 asked to wait. */
  readonly retryAfterMs: number | null;
  /** It was the one delivery that tried an open endpoint again. */
  readonly isProbe: boolean;
}

/**
 * The circuit breaker. `gone` is left by hand alone; everything that answers closes the rest.
 *
 * @param random from 0 to less than 1
 */
export function afterSighting(standing: EndpointStanding, sighting: Sighting, random: number): EndpointStanding {
  const { sign, reason: lastReason } = sighting;
  if (standing.state === "gone") return standing;
  if (sign === "gone") return { ...standing, state: "gone", lastReason, probeInMs: null };
  if (sign === "lives") return { ...unknownEndpoint, lastReason: standing.lastReason };
  const failures = standing.failures + 1;
  if (standing.state === "closed" && failures < failuresToOpen) return { ...standing, failures, lastReason };
  const askedMs = Math.min(sighting.retryAfterMs ?? 0, retryAfterMaxMs);
  if (standing.state === "closed") {
    const probeInMs = Math.max(probeWaitMs(0, random), askedMs);
    return { state: "open", failures, probes: 0, probeInMs, lastReason };
  }
  // What was in flight when it opened fails as well: only a probe moves the next one, or a server that asks for time.
  const waitMs = sighting.isProbe ? probeWaitMs(standing.probes, random) : (standing.probeInMs ?? 0);
  return { ...standing, failures, lastReason, probeInMs: Math.max(waitMs, askedMs) };
}

/** How long to wait for the next probe after `probes` that failed, ± 15 %. */
export function probeWaitMs(probes: number, random: number): number {
  const stepMs = Math.min(probeStepMs * 2 ** Math.min(probes, 16), probeStepMaxMs);
  return stepMs * (1 - jitter + 2 * jitter * random);
}
