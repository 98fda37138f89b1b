import type { Facts } from "./facts.ts";
import type { FindingCode, Words } from "./findings.ts";
import type { SealerKeys } from "./keys.ts";
import type { Deviation, SampleNotification } from "./notification.ts";
import type { HttpPost } from "./post.ts";

/** The expected answer to a case, or to one of its posts: 2xx in time, or 4xx. */
export type Expectation = "accepted" | "refused";

/** One requirement for an endpoint. */
export interface Case {
  /** Stable: scripts name it. */
  readonly code: string;
  /** The post, in a few words. */
  readonly title: string;
  readonly expects: Expectation;
  /** Whether its refusal must look like the others: only the service can make a valid one. */
  readonly alike?: boolean;
  /** Why it does not apply to an endpoint with these settings; undefined: it does. */
  readonly leftOut?: (keys: SealerKeys) => string | undefined;
  readonly steps: (bench: Bench) => readonly CaseStep[];
  /** The meaning of a failure and its remedy, if this case knows more than the finding. */
  readonly words?: Partial<Readonly<Record<FindingCode, Words>>>;
}

/** One post of a case, and its expected answer. */
export interface CaseStep {
  readonly what: string;
  readonly post: HttpPost;
  /** `anything`: the answer does not matter, only that of the next step. */
  readonly expects: Expectation | "anything";
}

/** The tools for making a case's posts. */
export interface Bench {
  readonly facts: Facts;
  readonly keys: SealerKeys;
  /** Signed and encrypted now, except for the deviations. */
  post(notification: SampleNotification, deviation?: Deviation): HttpPost;
}
