/** A process's memory at one moment, in bytes. */
export interface MemorySample {
  readonly rss: number;
  /** Live objects of JavaScript, and what is not collected yet. */
  readonly heapUsed: number;
  /** V8's reservation for them. */
  readonly heapTotal: number;
  /** Outside V8's heap, for its objects; `arrayBuffers` (Buffers among them) is part of it. */
  readonly external: number;
  readonly arrayBuffers: number;
}

const sampleEveryMs = 100;

/** Looks ten times a second what a process holds, and remembers the moment of the most. */
export class MemoryWatch {
  readonly #process: NodeJS.Process;
  readonly #sampler: NodeJS.Timeout;
  #most: MemorySample;

  constructor(process: NodeJS.Process) {
    this.#process = process;
    this.#most = process.memoryUsage();
    this.#sampler = setInterval(() => {
      // The whole of memoryUsage() walks the heap's spaces: only where there is something new to tell.
      if (process.memoryUsage.rss() > this.#most.rss) this.#most = process.memoryUsage();
    }, sampleEveryMs);
    this.#sampler.unref();
  }

  /** When the most was held, since the start or since `forget`. */
  get most(): MemorySample {
    return this.#most;
  }

  forget(): void {
    this.#most = this.#process.memoryUsage();
  }

  stop(): void {
    clearInterval(this.#sampler);
  }
}
