import { setTimeout as pause } from "node:timers/promises";
import { type GivenItem, type IntakeParts, type ItemResult, isUnavailable, reportItems } from "./items.ts";

export interface UntilDurable {
  /** Ends the wait between two tries: then it rejects. */
  readonly signal: AbortSignal;
  /** Called before each wait, with the reason. */
  readonly onTrouble: (error: unknown) => void;
}

const waitsMs = [250, 1_000, 5_000, 15_000] as const;

/**
 * Reports items until each is durable or refused for good: for an intake whose sender does not send again by itself.
 * Whatever stands in the way, such as a database that is away, is waited for.
 *
 * @returns one result for each, in order
 * @throws the signal's reason, if it was aborted before: then the items are reported again after the next start
 */
export async function reportUntilDurable(
  given: readonly GivenItem[],
  parts: IntakeParts,
  { signal, onTrouble }: UntilDurable,
): Promise<readonly ItemResult[]> {
  const results: (ItemResult | undefined)[] = given.map(() => undefined);
  for (let tries = 0; ; tries += 1) {
    const left = [...results.keys()].filter((index) => results[index] === undefined);
    const trouble = await reportOnce(left, given, results, parts);
    if (trouble === undefined) return results as ItemResult[];
    signal.throwIfAborted();
    onTrouble(trouble.error);
    await pause(waitsMs[Math.min(tries, waitsMs.length - 1)], undefined, { signal });
  }
}

/** @returns the reason why some of them are to be reported again; undefined if none is */
async function reportOnce(
  indexes: readonly number[],
  given: readonly GivenItem[],
  results: (ItemResult | undefined)[],
  parts: IntakeParts,
): Promise<{ readonly error: unknown } | undefined> {
  try {
    const items = indexes.flatMap((index) => given[index] ?? []);
    const answers = await reportItems(items, parts);
    for (const [at, answer] of answers.entries()) {
      const index = indexes[at];
      if (index !== undefined && !isUnavailable(answer)) results[index] = answer;
    }
    const unavailable = answers.find(isUnavailable);
    return unavailable && { error: unavailable.problem };
  } catch (error) {
    return { error };
  }
}
