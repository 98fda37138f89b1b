import { parentPort } from "node:worker_threads";
import { type Envelope, type EnvelopeFor, makeEnvelope, type SealedFor } from "./envelope.ts";

/** What the thread is asked: the number of a job, and what `makeEnvelope` takes. */
export interface SealingJob {
  readonly no: number;
  /** The facts as JSON text in UTF-8. Its memory is the thread's from then on. */
  readonly content: Uint8Array<ArrayBuffer>;
  readonly partner: SealedFor;
  readonly attempt: EnvelopeFor;
}

/** What it answers. The memory of the body comes along, uncopied. */
export type SealingDone =
  | { readonly no: number; readonly envelope: Envelope<Uint8Array<ArrayBuffer>> }
  | { readonly no: number; readonly problem: string };

// The entry of the worker thread. Imported by the main thread, it does nothing.
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
  // Never from the pool, whose memory is shared and cannot be given away. The body is ASCII: see makeEnvelope.
  const bytes = Buffer.allocUnsafeSlow(body.length) as Buffer<ArrayBuffer>;
  bytes.write(body, "latin1");
  return { headers, body: bytes, keyId };
}
