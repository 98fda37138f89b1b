import type { HttpPost } from "../post.ts";
import type { Facts } from "./facts.ts";
import type { FindingCode, Words } from "./findings.ts";
import type { SealerKeys } from "./keys.ts";
import type { Deviation, SampleNotification } from "./notification.ts";

/** What a case, or one of its posts, has to be answered: 2xx in time, or 4xx. */
export type Expectation = "accepted" | "refused";

/** One thing that an endpoint has to get right. */
export interface Case {
  /** Stable: scripts name it. */
  readonly code: string;
  /** What is posted, in a few words. */
  readonly title: string;
  readonly expects: Expectation;
  /** Whether its refusal has to look like those of the others: it is about what only the service can make. */
  readonly alike?: boolean;
  readonly steps: (bench: Bench) => readonly CaseStep[];
  /** What a failure means and how to mend it, where this case knows better than the finding alone. */
  readonly words?: Partial<Readonly<Record<FindingCode, Words>>>;
}

/** One post of a case, and what has to come. */
export interface CaseStep {
  readonly what: string;
  readonly post: HttpPost;
  /** `anything`: whatever comes says nothing, the next step does. */
  readonly expects: Expectation | "anything";
}

/** What cases make their posts with. */
export interface Bench {
  readonly facts: Facts;
  readonly keys: SealerKeys;
  /** Signed and sealed now, but for what deviates. */
  post(notification: SampleNotification, deviation?: Deviation): HttpPost;
}
