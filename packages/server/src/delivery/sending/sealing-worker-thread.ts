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

type SealedEnvelope = Omit<Envelope, "body"> & { readonly body: Uint8Array<ArrayBuffer> };

/** The answer. The memory of the body is transferred, not copied. */
export type SealingDone =
  | { readonly no: number; readonly envelope: SealedEnvelope }
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

function sealed({ content, partner, attempt }: SealingJob): SealedEnvelope {
  const { headers, body, keyId } = makeEnvelope(new TextDecoder().decode(content), partner, attempt);
  // A small body is part of a memory that others share, which cannot be transferred.
  const isAlone = body.buffer.byteLength === body.length;
  return { headers, body: isAlone ? (body as Buffer<ArrayBuffer>) : Uint8Array.from(body), keyId };
}
