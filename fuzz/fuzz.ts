import { type Profiler, Session } from "node:inspector/promises";
import { seeded } from "../faults/random.ts";

/** A reader of untrusted input. */
export interface FuzzTarget {
  readonly name: string;
  readonly seeds: readonly Buffer[];
  /** Throws what it should never throw, or when it contradicts itself. */
  run(input: Buffer): void;
}

export interface FuzzOptions {
  readonly seed: number;
  /** It ends with whichever comes first. */
  readonly casesMax: number;
  readonly durationMs: number;
}

export interface FuzzResult {
  readonly target: string;
  readonly cases: number;
  readonly blocks: number;
  readonly kept: number;
  /** The input that was not borne, and why. */
  readonly failure?: { readonly input: Buffer; readonly error: unknown };
}

const together = 64;
/** CPU time for one input of 4 KiB at most: an input that takes longer lets a stranger hold everybody up. */
const cpuMsMax = 250;

/** Tries inputs near those that reached new code, until one is not borne or its time is over: some, however slow. */
export async function fuzz(target: FuzzTarget, { seed, casesMax, durationMs }: FuzzOptions): Promise<FuzzResult> {
  const random = seeded(seed).next;
  const corpus = [...target.seeds];
  const coverage = new Coverage();
  const pick = () => corpus[Math.floor(random() ** 0.7 * corpus.length)] ?? Buffer.of();
  const startedMs = performance.now();
  let cases = 0;
  const result = () => ({ target: target.name, cases, blocks: coverage.blocks, kept: corpus.length });
  await coverage.start();
  try {
    for (const input of target.seeds) target.run(input);
    await coverage.hasNew();
    do {
      const inputs = Array.from({ length: together }, () => mutated(pick(), pick(), random));
      for (const input of inputs) {
        const failure = tried(target, input);
        cases += 1;
        if (failure !== undefined) return { ...result(), failure: { input, error: failure } };
      }
      if (!(await coverage.hasNew())) continue;
      // Finding the one of them costs running them again, and happens seldom.
      corpus.push(...(await reaching(target, inputs)));
    } while (cases < casesMax && performance.now() - startedMs < durationMs);
    return result();
  } finally {
    await coverage.stop();
  }
}

/** The inputs of a batch that reach code which no earlier one reached. */
async function reaching(target: FuzzTarget, inputs: readonly Buffer[]): Promise<Buffer[]> {
  const alone = new Coverage();
  await alone.start();
  try {
    const kept: Buffer[] = [];
    for (const input of target.seeds) tried(target, input);
    await alone.hasNew();
    for (const input of inputs) {
      tried(target, input);
      if (await alone.hasNew()) kept.push(input);
    }
    return kept;
  } finally {
    await alone.stop();
  }
}

function tried(target: FuzzTarget, input: Buffer): unknown {
  const before = process.cpuUsage();
  try {
    target.run(input);
  } catch (error) {
    return error;
  }
  const { user } = process.cpuUsage(before);
  return user / 1_000 > cpuMsMax ? new Error(`it took ${Math.round(user / 1_000)} ms of the processor`) : undefined;
}

const bytesMax = 4_096;
/** Values that often break parsers. */
const words = [
  ...['"', "\\", "\\u0000", "\\ud800", "{", "}", "[", "]", ",", ":", "null", "-0", "1e999", "__proto__", "constructor"],
  ...["\0", "\u2028", "\u200d", "\ufeff", "é", "😀", "%00", "%2e%2e", "::", "::ffff:127.0.0.1", "0x7f.1", "/32", "@"],
  ...["4111111111111111", "cvv", " ", "\r\n", ".", "=", "==", "A".repeat(64), "9".repeat(40)],
].map((text) => Buffer.from(text));

/** Another input near this one: some bytes changed, taken out, repeated, or joined with those of a second one. */
function mutated(input: Buffer, other: Buffer, random: () => number): Buffer {
  let bytes = input;
  const steps = 1 + Math.floor(random() * 4);
  for (let step = 0; step < steps; step += 1) bytes = change(bytes, other, random);
  return bytes.subarray(0, bytesMax);
}

function change(bytes: Buffer, other: Buffer, random: () => number): Buffer {
  const at = Math.floor(random() * (bytes.length + 1));
  const end = Math.min(bytes.length, at + 1 + Math.floor(random() ** 3 * 32));
  const [head, middle, tail] = [bytes.subarray(0, at), bytes.subarray(at, end), bytes.subarray(end)];
  const word = words[Math.floor(random() * words.length)] ?? Buffer.of();
  const byte = Buffer.of(Math.floor(random() * 256));
  const cut = other.subarray(Math.floor(random() * (other.length + 1)));
  const changes = [
    [head, byte, bytes.subarray(at + 1)],
    [head, byte, middle, tail],
    [head, tail],
    [head, middle, middle, tail],
    [head, word, middle, tail],
    [head, word, tail],
    [head, cut],
    [head, cut.subarray(0, 16), tail],
  ];
  return Buffer.concat(changes[Math.floor(random() * changes.length)] ?? []);
}

/** Code of ours: what V8, Node and libraries reach says nothing about an input. */
const ours = /\/packages\/[^/]+\/src\//;

/** The blocks of our code that were run since the last question, as V8 counts them. */
class Coverage {
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
