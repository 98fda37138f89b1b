import { parentPort } from "node:worker_threads";
import { type Envelope, type EnvelopeFor, makeEnvelope, type SealedFor } from "./envelope.ts";

/** The request to the thread: the number of a job, and the arguments of `makeEnvelope`. */
export interface SealingJob {
  readonly no: number;
  /** The facts as JSON text in UTF-8. Its memory is transferred to the thread. */
  readonly content: Uint8Array<ArrayBuffer>;
  readonly partner: SealedFor;
  readonly attempt: EnvelopeFor;
}

/** The answer. The memory of the body is transferred, not copied. */
export type SealingDone =
  | { readonly no: number; readonly envelope: Envelope<Uint8Array<ArrayBuffer>> }
  | { readonly no: number; readonly problem: string };

// The entry of the worker thread. It does nothing when the main thread imports it.
parentPort?.on("message", (job: SealingJob) => {
  try {
    const envelope = sealed(job);
    const done: SealingDone = { no: job.no, envelope };
    parentPort?.postMessage(done, [envelope.body.buffer]);
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    parentPort?.postMessage({ no: job.no, problem } satisfies SealingDone);
  }
});

function sealed({ content, partner, attempt }: SealingJob): Envelope<Uint8Array<ArrayBuffer>> {
  const { headers, body, keyId } = makeEnvelope(new TextDecoder().decode(content), partner, attempt);
  // Never from the pool, whose memory is shared and cannot be transferred. The body is ASCII: see makeEnvelope.
  const bytes = Buffer.allocUnsafeSlow(body.length) as Buffer<ArrayBuffer>;
  bytes.write(body, "latin1");
  return { headers, body: bytes, keyId };
}
