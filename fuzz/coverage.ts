import { type Profiler, Session } from "node:inspector/promises";

/** Code of ours: what V8, Node and libraries reach says nothing about an input. */
const ours = /\/packages\/[^/]+\/src\//;

/** The blocks of our code that were run since the last question, as V8 counts them. */
export class Coverage {
  readonly #session = new Session();
  readonly #seen = new Set<string>();

  async start(): Promise<void> {
    this.#session.connect();
    await this.#session.post("Profiler.enable");
    await this.#session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  }

  get blocks(): number {
    return this.#seen.size;
  }

  /** @returns whether a block was run that never was before */
  async hasNew(): Promise<boolean> {
    const { result } = await this.#session.post("Profiler.takePreciseCoverage");
    const before = this.#seen.size;
    for (const script of result) if (ours.test(script.url)) this.#note(script);
    return this.#seen.size > before;
  }

  async stop(): Promise<void> {
    await this.#session.post("Profiler.stopPreciseCoverage");
    this.#session.disconnect();
  }

  #note({ url, functions }: Profiler.ScriptCoverage): void {
    for (const { ranges } of functions) {
      for (const { startOffset, endOffset, count } of ranges) {
        // The count by powers of two: a loop that runs more often is news as well.
        if (count > 0) this.#seen.add(`${url} ${startOffset} ${endOffset} ${Math.min(12, 32 - Math.clz32(count))}`);
      }
    }
  }
}
