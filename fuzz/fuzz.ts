import { Coverage } from "./coverage.ts";
import { mutated, seeded } from "./mutate.ts";
import type { FuzzTarget } from "./targets.ts";

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

/** Tries inputs near those that reached new code, until one is not borne or its time is over. */
export async function fuzz(target: FuzzTarget, { seed, casesMax, durationMs }: FuzzOptions): Promise<FuzzResult> {
  const random = seeded(seed);
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
    while (cases < casesMax && performance.now() - startedMs < durationMs) {
      const inputs = Array.from({ length: together }, () => mutated(pick(), pick(), random));
      for (const input of inputs) {
        const failure = tried(target, input);
        cases += 1;
        if (failure !== undefined) return { ...result(), failure: { input, error: failure } };
      }
      if (!(await coverage.hasNew())) continue;
      // Finding the one of them costs running them again, and happens seldom.
      corpus.push(...(await reaching(target, inputs)));
    }
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
