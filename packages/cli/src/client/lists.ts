import { setTimeout as sleep } from "node:timers/promises";
import type { Command, OptionValues } from "@commander-js/extra-typings";
import type { Self } from "@paybell/partner/client";
import type { CommandContext } from "../shell/context.ts";
import { type ExitCode, exitCodes, Failure, failureText, passes } from "../shell/failure.ts";
import { limitOption, timeForms, timeReader } from "../shell/options.ts";
import {
  columns,
  itemsOf,
  type JsonOption,
  printable,
  type Result,
  showing,
  Table,
  type TableColumn,
} from "../shell/output.ts";
import type { Api, Query } from "./api.ts";

interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

const pageItems = 500;

interface Reading<Item> {
  readonly itemsMax?: number | undefined;
  /** Called if there are more than that. */
  readonly onMore?: () => void;
  /** Called after each page, with the number read. */
  readonly onProgress?: (count: number) => void;
  /** Called with each item: whether it ends the reading, and is left out. */
  readonly isBeyond?: (item: Item) => boolean;
}

/** Every item of a paged list. */
export async function readPages<Item>(
  api: Api,
  path: string,
  query: Query = {},
  { itemsMax = Number.POSITIVE_INFINITY, onMore, onProgress, isBeyond = () => false }: Reading<Item> = {},
): Promise<readonly Item[]> {
  const all: Item[] = [];
  let after: string | undefined;
  for (;;) {
    const limit = Math.min(pageItems, itemsMax - all.length);
    const page = await api.get<Page<Item>>(path, { ...query, after, limit });
    const end = page.items.findIndex(isBeyond);
    for (const item of end < 0 ? page.items : page.items.slice(0, end)) all.push(item);
    onProgress?.(all.length);
    const isLast = end >= 0 || page.next === null;
    if (!isLast && all.length >= itemsMax) onMore?.();
    if (isLast || all.length >= itemsMax) return all.slice(0, itemsMax);
    after = page.next ?? undefined;
  }
}

/** Reads up to `--limit`, and says so to a person: the list would look like a whole one. */
export function untilLimit({ stderr }: CommandContext, { limit, json }: JsonOption & { readonly limit: number }) {
  const onMore = () => {
    if (!json) stderr.write(`These are ${limit}, and there may be more: --limit sets how many.\n`);
  };
  return { itemsMax: limit, onMore };
}

/** A list of the service that has the newest first. */
export interface NewestFirst<Item> {
  readonly plural: string;
  readonly api: Api;
  readonly path: string;
  readonly query: Query;
  readonly columns: readonly TableColumn<Item>[];
  idOf(item: Item): string;
  /** ISO 8601 in UTC. */
  timeOf(item: Item): string;
}

export type NewestOptions = JsonOption & {
  readonly limit: number;
  readonly since?: string | undefined;
  readonly follow?: boolean | undefined;
};

export function withNewest<Args extends unknown[], Options extends OptionValues>(
  context: CommandContext,
  made: Command<Args, Options>,
) {
  return made
    .option("--since <time>", `at or after this time: ${timeForms}`, timeReader(context))
    .addOption(limitOption())
    .option("--follow", followText) as unknown as Command<Args, Options & NewestOptions>;
}

const followText =
  "oldest first, then what is added, until Ctrl-C; with --state also what comes to be in it, of its newest 500";
const followEveryMs = 2_000;
/** A time is taken a moment before the commit that shows it: an item may appear below newer ones. */
const lateMs = 10_000;

/** A list; with `--follow` it prints the list and what is added: with `--json` one object a line. */
export async function newest<Item>(
  context: CommandContext,
  options: NewestOptions,
  list: NewestFirst<Item>,
): Promise<Result | ExitCode> {
  const { limit, since, follow = false } = options;
  if (follow) return followNewest(context, options, list);
  const items = await showing(context, `reading ${list.plural}`, limit, (onProgress) =>
    readSince(list, since, { ...untilLimit(context, options), onProgress }),
  );
  return itemsOf(items, list.columns);
}

async function followNewest<Item>(
  { stdout, stderr, signal }: CommandContext,
  { limit, since = "", json = false }: NewestOptions,
  list: NewestFirst<Item>,
): Promise<ExitCode> {
  const table = new Table(list.columns);
  // An item is in a state long after it was made: a Reversal is parked after days.
  const hasState = list.query["state"] !== undefined;
  const firstMax = hasState ? Math.max(limit, pageItems) : limit;
  let shown: ReadonlySet<string> | undefined;
  /** Older ones are not shown, though some may exist: it only moves on, also if the newest leave the list. */
  let from = since;
  for (;;) {
    try {
      const isFirst = shown === undefined;
      const items = (await readSince(list, from, { itemsMax: isFirst ? firstMax : undefined })).toReversed();
      const added = isFirst ? items.slice(-limit) : items.filter((item) => shown?.has(list.idOf(item)) !== true);
      const lines = json ? added.map((item) => JSON.stringify(item)) : table.lines(added);
      stdout.write(lines.map((line) => `${line}\n`).join(""));
      const times = items.map(list.timeOf);
      if (isFirst && times.length === firstMax) from = times[0] ?? from;
      const next = watchedFrom(times, hasState);
      if (next > from) from = next;
      shown = new Set(items.map(list.idOf));
    } catch (error) {
      if (signal.aborted) return exitCodes.ok;
      // A restart of the service is not the end. A list that never began is.
      if (shown === undefined || !(error instanceof Failure) || !passes(error)) throw error;
      stderr.write(`${failureText(error)}\n`);
    }
    await sleep(followEveryMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return exitCodes.ok;
  }
}

/** The time of the oldest item that may still be new. @param times oldest first */
function watchedFrom(times: readonly string[], hasState: boolean): string {
  const last = times.at(-1);
  const watched = hasState ? times.at(-pageItems) : last;
  if (last === undefined || watched === undefined) return "";
  const late = new Date(Date.parse(last) - lateMs).toISOString();
  return watched < late ? watched : late;
}

async function readSince<Item>(
  { api, path, query, idOf, timeOf }: NewestFirst<Item>,
  since: string | undefined,
  reading: Reading<Item>,
): Promise<readonly Item[]> {
  if (since === undefined || since === "") return readPages(api, path, query, reading);
  // The order is that of the ids, which is that of time, except of ids that a switch made.
  const isBeyond = (item: Item) => timeOf(item) < since && ["7", undefined].includes(idOf(item)[14]);
  const items = await readPages(api, path, query, { ...reading, isBeyond });
  return items.filter((item) => timeOf(item) >= since);
}

/** A partner as the operator API and GET /v1/self answer it. */
export type RegisteredPartner = Pick<Self, "id" | "state" | "settings" | "keys" | "createdAt">;

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Something that a command takes by its id or by a name. */
export interface Named {
  readonly id: string;
  readonly names: readonly string[];
}

/**
 * The one that is meant by an id, or by a name in any case of its letters.
 *
 * @param lister the command that lists them
 * @throws Failure if there is none, or several have the name: it lists them
 */
export function meant<One extends Named>(all: readonly One[], text: string, noun: string, lister: string): One {
  const named = (is: (name: string) => boolean) => all.filter(({ names }) => names.some(is));
  const exact = all.filter(({ id }) => id.toLowerCase() === text.toLowerCase());
  const same = exact.length > 0 ? exact : named((name) => name === text);
  const found = same.length > 0 ? same : named((name) => name.toLowerCase() === text.toLowerCase());
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  const remedy = `\`${lister}\` lists them.`;
  if (only === undefined) {
    throw new Failure(`there is no ${noun} ${JSON.stringify(text)}.`, { code: "not_found", remedy });
  }
  throw new Failure(`${found.length} have the name ${JSON.stringify(text)}: give an id.`, {
    code: "ambiguous_name",
    lines: columns(found.map(({ id, names }) => [id, ...names.map(printable)])),
    remedy,
  });
}

/** The id of the partner that an operator names. @throws Failure if there is none, or several have the name */
export async function partnerIdNamed(operator: Api, text: string): Promise<string> {
  if (uuid.test(text)) return text;
  const partners = await readPages<RegisteredPartner>(operator, "/operator/v1/partners");
  const named = partners.map(({ id, settings }) => ({ id, names: [settings.name] }));
  return meant(named, text, "partner", "paybell partner list").id;
}
