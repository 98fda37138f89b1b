import type { Worker } from "node:worker_threads";
import { ServiceError } from "../../errors.ts";
import type { TroubleLog } from "../../log.ts";
import { startThread } from "../thread/start-thread.ts";
import { type Envelope, type EnvelopeFor, type MakeEnvelope, makeEnvelope, type SealedFor } from "./envelope.ts";
import type { SealingDone, SealingJob } from "./sealing-worker-thread.ts";

/** The sealing queue is full. Nothing was sealed: try again in a second. */
export class SealingQueueFull extends ServiceError {
  constructor() {
    super("unavailable", "Too much waits to be sealed.", { retryAfterS: 1 });
  }
}

/** The thread ended, or was stopped, with unfinished jobs; none of them was sent. */
export class SealingWorkerDied extends Error {
  override readonly name = "SealingWorkerDied";
}

export interface SealingWorkerOptions {
  readonly log: TroubleLog;
  /** Content up to this many characters is sealed by the caller's own thread. */
  readonly smallCharsMax?: number;
  /** Maximum number of jobs in the thread. */
  readonly jobsMax?: number;
  /** Characters of content that may wait for the thread. A larger one waits only alone. */
  readonly waitingCharsMax?: number;
  /** After this long without a word from the thread, with jobs in its hands, it is ended. */
  readonly silentMs?: number;
  /** After this long without a job it is ended. */
  readonly idleMs?: number;
  /** The thread's own memory, in megabytes. */
  readonly heapMbMax?: number;
  /** Called for each large content that was passed to the thread, with its waiting time. */
  readonly onHanded?: (waitedMs: number) => void;
}

interface Job {
  readonly sinceMs: number;
  readonly content: string;
  readonly partner: SealedFor;
  readonly attempt: EnvelopeFor;
  readonly resolve: (envelope: Envelope) => void;
  readonly reject: (error: Error) => void;
}

/** A body of 256 KiB in base64. */
const smallCharsMaxDefault = 192 * 1_024;
const waitingCharsMaxDefault = 32 * 1_024 * 1_024;
/** Measured: 1,500,000 entries can be sealed within it; 3,000,000 end the thread after 4 s, and not the process. */
const heapMbMaxDefault = 512;

/**
 * Makes large envelopes in a separate thread, so that a settlement blocks no event loop, and small ones at once. The
 * thread is started when it is first needed, and ended after a minute without work. Measured: sealing 50,000 entries
 * (3.6 MB) takes 37 to 60 ms; here it blocks the event loop for 2 to 9 ms in all.
 */
export class SealingWorker {
  readonly #options: Required<SealingWorkerOptions>;
  readonly #waiting: Job[] = [];
  readonly #taken = new Map<number, Job>();
  #waitingChars = 0;
  #lastNo = 0;
  #thread: Worker | undefined;
  #silence: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: SealingWorkerOptions) {
    this.#options = {
      smallCharsMax: smallCharsMaxDefault,
      jobsMax: 4,
      waitingCharsMax: waitingCharsMaxDefault,
      silentMs: 60_000,
      idleMs: 60_000,
      heapMbMax: heapMbMaxDefault,
      onHanded: () => undefined,
      ...options,
    };
  }

  /** Jobs in the thread; characters that wait for it; the thread's id, undefined without a thread. */
  get status(): { readonly jobs: number; readonly waitingChars: number; readonly threadId: number | undefined } {
    return { jobs: this.#taken.size, waitingChars: this.#waitingChars, threadId: this.#thread?.threadId };
  }

  /**
   * As `makeEnvelope`. A large content, which would block the event loop for long, is sealed in the thread: its body
   * has memory of its own.
   *
   * @throws SealingQueueFull (rejected) if the queue is full, SealingWorkerDied if the thread ended meanwhile
   */
  readonly make: MakeEnvelope = (content, partner, attempt) =>
    content.length > this.#options.smallCharsMax
      ? this.#makeLarge(content, partner, attempt)
      : makeEnvelope(content, partner, attempt);

  #makeLarge(content: string, partner: SealedFor, attempt: EnvelopeFor): Promise<Envelope> {
    if (this.#stopped) return Promise.reject(new SealingWorkerDied("Sealing was stopped."));
    const isTooMuch = this.#waitingChars + content.length > this.#options.waitingCharsMax;
    if (this.#waitingChars > 0 && isTooMuch) return Promise.reject(new SealingQueueFull());
    return new Promise((resolve, reject) => {
      this.#waiting.push({ sinceMs: performance.now(), content, partner, attempt, resolve, reject });
      this.#waitingChars += content.length;
      this.#hand();
    });
  }

  /** Ends the thread. Unfinished jobs fail, and later ones fail at once. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#waitingChars = 0;
    for (const job of this.#waiting.splice(0)) job.reject(new SealingWorkerDied("Sealing was stopped."));
    await this.#end("Sealing was stopped.");
  }

  /** Passes jobs to the thread while it may have more. */
  #hand(): void {
    while (this.#taken.size < this.#options.jobsMax) {
      const job = this.#waiting.shift();
      if (job === undefined) return;
      this.#waitingChars -= job.content.length;
      this.#options.onHanded(performance.now() - job.sinceMs);
      this.#handOne(job);
    }
  }

  #handOne(job: Job): void {
    const { partner, attempt } = job;
    this.#lastNo += 1;
    this.#taken.set(this.#lastNo, job);
    try {
      this.#thread ??= this.#start();
      // Transferred, not copied again.
      const content = new TextEncoder().encode(job.content);
      const message: SealingJob = {
        no: this.#lastNo,
        content,
        partner: { settings: partner.settings, keys: partner.keys },
        attempt,
      };
      this.#thread.postMessage(message, [content.buffer]);
      this.#thread.ref();
      this.#watch();
    } catch (error) {
      this.#taken.delete(this.#lastNo);
      job.reject(new SealingWorkerDied("The sealing thread cannot be reached.", { cause: error }));
    }
  }

  #start(): Worker {
    // Next to this file, in the sources and in the published package.
    const entry = import.meta.url.endsWith(".ts") ? "./sealing-worker-thread.ts" : "./sealing-worker-thread.js";
    const thread = startThread<SealingDone>({
      entry: new URL(entry, import.meta.url),
      name: "paybell sealing",
      logName: "the sealing thread",
      limits: { maxOldGenerationSizeMb: this.#options.heapMbMax },
      log: this.#options.log,
      onMessage: (done) => {
        if (thread === this.#thread) this.#done(done);
      },
      onExit: (code) => {
        if (thread === this.#thread) this.#lost(`The sealing thread ended with ${code} before it had sealed this.`);
      },
    });
    return thread;
  }

  #done(done: SealingDone): void {
    const job = this.#taken.get(done.no);
    this.#taken.delete(done.no);
    if ("problem" in done) job?.reject(new Error(`It cannot be sealed: ${done.problem}`));
    else job?.resolve({ ...done.envelope, body: Buffer.from(done.envelope.body.buffer) });
    this.#hand();
    this.#watch();
    // An idle thread keeps no process alive.
    if (this.#taken.size === 0) this.#thread?.unref();
  }

  #watch(): void {
    const { silentMs, idleMs } = this.#options;
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.#silent(), this.#taken.size > 0 ? silentMs : idleMs).unref();
  }

  /** Idle for too long, or stuck: the thread is ended both ways, and started again when it is needed. */
  #silent(): void {
    if (this.#taken.size > 0) this.#options.log.error({ jobs: this.#taken.size }, "the sealing thread is stuck");
    void this.#end("The sealing thread was stuck.");
  }

  async #end(why: string): Promise<void> {
    const thread = this.#thread;
    this.#lost(why);
    await thread?.terminate();
  }

  /**
   * The thread has ended. It takes one job after the other: the first one fails, because it may have ended the thread,
   * and a new thread gets the others.
   */
  #lost(why: string): void {
    clearTimeout(this.#silence);
    this.#silence = undefined;
    this.#thread = undefined;
    const [first, ...others] = this.#taken.values();
    this.#taken.clear();
    first?.reject(new SealingWorkerDied(why));
    if (this.#stopped) for (const job of others) job.reject(new SealingWorkerDied(why));
    else this.#waiting.unshift(...others);
    this.#waitingChars = this.#waiting.reduce((sum, { content }) => sum + content.length, 0);
    this.#hand();
  }
}
