import { setTimeout as pause } from "node:timers/promises";
import { badFields, ServiceError } from "../errors.ts";
import type { TransactionId } from "../ids.ts";
import { everyProblemOfCompletion, type Judges } from "../input/every-problem.ts";
import { pathText, shapeError } from "../input/issues.ts";
import { readJson } from "../input/json.ts";
import { completionSchema, withReqIds } from "../input/shapes.ts";
import type { RefusedItem, ReportResult, Reports } from "../ledger/reports/reports.ts";

/** The parts that every intake needs: HTTP, files. */
export interface IntakeParts extends Judges {
  readonly reports: Pick<Reports, "report" | "recordRefused">;
}

/** An item as it arrived: a value of JSON, or a text that cannot be read as one, and why. */
export interface GivenItem {
  readonly item: unknown;
  readonly unreadable?: ServiceError;
}

/** One completion in JSON. @param place of the item, as errors call it */
export function jsonItem(bytes: Buffer, place: "The line" | "The message"): GivenItem {
  try {
    return { item: readJson(bytes) };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const unreadable = new ServiceError(error.code, error.message.replace("The body", place));
    return { item: bytes.toString("utf8"), unreadable };
  }
}

/** The result of one item, whichever way it came. */
export interface ItemResult {
  readonly externalId: string;
  readonly result: ReportResult["result"];
  readonly transactionId?: TransactionId;
  /** It names every invalid field at once. */
  readonly problem?: ServiceError;
}

/** The path of an item, before its fields: `completions[3]` in the HTTP API, empty in a line of a file. */
type ItemPath = (index: number) => readonly PropertyKey[];

/**
 * Reports completions of unknown shape to the ledger. Items are independent: an invalid one affects no other. A refused
 * one is recorded as an event, unless it only could not be made durable now.
 *
 * @returns one result for each, in order
 * @throws ServiceError `unavailable` if nothing could be made durable
 */
export async function reportItems(
  given: readonly GivenItem[],
  parts: IntakeParts,
  pathOf: ItemPath = () => [],
): Promise<ItemResult[]> {
  const items = given.map(({ item, unreadable }) => (unreadable ? item : withReqIds(item)));
  const read = given.map(({ unreadable }, index) => unreadable ?? readItem(items[index], pathOf(index)));
  const wellShaped = read.flatMap((one) => (one instanceof ServiceError ? [] : [one]));
  const reported = wellShaped.length === 0 ? [] : await parts.reports.report(wellShaped);
  if (reported.length !== wellShaped.length)
    throw new Error("the ledger answered another number of items than it was given");
  const answers = reported.values();
  const results = read.map((one, index) =>
    one instanceof ServiceError
      ? { externalId: externalIdOf(items[index]), result: "refused" as const, problem: one }
      : inItem(answers.next().value, pathOf(index)),
  );
  const all = await Promise.all(
    results.map((result, index) =>
      given[index]?.unreadable ? result : withEveryField(result, items[index], pathOf(index), parts),
    ),
  );
  await parts.reports.recordRefused(all.flatMap((result, index) => refusedItem(result, given[index]?.item)));
  return all;
}

/** Whether the item is to be reported again: nothing is wrong with it. */
function isUnavailable({ result, problem }: ItemResult): boolean {
  return result === "refused" && problem?.code === "unavailable";
}

function readItem(item: unknown, path: readonly PropertyKey[]) {
  const { error, data } = completionSchema(item).safeParse(item);
  if (error === undefined) return data;
  const isObject = typeof item === "object" && item !== null && !Array.isArray(item);
  if (path.length === 0 && !isObject) return new ServiceError("invalid_json", "A completion must be one JSON object.");
  return shapeError(error, item, path);
}

function refusedItem(answer: ItemResult, item: unknown): RefusedItem[] {
  const { result, externalId, problem } = answer;
  if (result !== "refused" || problem === undefined || isUnavailable(answer)) return [];
  const fields = problem.fields.map(({ field, code }) => ({ field, code }));
  return [{ item, externalId, problems: fields.length > 0 ? fields : [{ field: "", code: problem.code }] }];
}

/** The ledger names an item's fields by themselves, the caller knows them by their place. */
function inItem(answer: ReportResult | undefined, path: readonly PropertyKey[]): ItemResult {
  if (answer === undefined) throw new Error("the ledger left an item out");
  const { problem } = answer;
  if (problem === undefined) return answer;
  const prefix = fieldPrefix(path);
  const fields = problem.fields.map((one) => ({ ...one, field: prefix + one.field }));
  return { ...answer, problem: new ServiceError(problem.code, problem.message, { fields }) };
}

function externalIdOf(item: unknown): string {
  const given = typeof item === "object" && item !== null && "externalId" in item ? item.externalId : undefined;
  return typeof given === "string" ? given.slice(0, 128) : "";
}

/** If the shape was invalid, or the partner unknown, the rules were not checked yet. */
async function withEveryField(
  answer: ItemResult,
  item: unknown,
  path: readonly PropertyKey[],
  judges: Judges,
): Promise<ItemResult> {
  const { result, problem } = answer;
  if (result !== "refused" || problem === undefined || problem.fields.length === 0) return answer;
  const known = problem.fields;
  const [first, ...others] = await everyProblemOfCompletion({ known, item, path: fieldPrefix(path) }, judges);
  return first === undefined ? answer : { ...answer, problem: badFields([first, ...others]) };
}

function fieldPrefix(path: readonly PropertyKey[]): string {
  return path.length === 0 ? "" : `${pathText(path)}.`;
}

interface UntilDurable {
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
