import { setTimeout as sleep } from "node:timers/promises";
import { type Command, Option, type OptionValues } from "@commander-js/extra-typings";
import type { RedeliveryProgress } from "@paybell/partner/client";
import type { Api } from "../client/api.ts";
import { type ClientSettings, calls, onlyPartner, partnerFilter } from "../client/connection.ts";
import { definedOf } from "../client/credentials.ts";
import { type RegisteredPartner, readPages } from "../client/lists.ts";
import { type AnyCommand, command, confirm, counted, withConfirmation } from "../shell/command.ts";
import type { CommandContext } from "../shell/context.ts";
import { exitCodes, Failure, failureText, passes } from "../shell/failure.ts";
import { timeForms, timeReader } from "../shell/options.ts";
import { printable, type Result, showing } from "../shell/output.ts";

/** The caller: an operator selects among the notifications of every partner, a partner among its own. */
export interface Redeliverer {
  readonly api: Api;
  readonly role: "operator" | "partner";
}

export type AsOption = {
  readonly as?: Redeliverer["role"] | undefined;
};

export function withRole<Args extends unknown[], Options extends OptionValues>(made: Command<Args, Options>) {
  const as = new Option("--as <role>", "whose view; default: the operator's if there is an operator token");
  return made.addOption(as.choices(["operator", "partner"] as const)) as unknown as Command<Args, Options & AsOption>;
}

/** The caller's role, and its routes for notifications. @throws Failure if a partner names a partner */
export function sideOf(
  settings: ClientSettings,
  { as, partner }: AsOption & { readonly partner?: string | undefined },
): Redeliverer & { readonly path: string } {
  const isOperator = as === undefined ? settings.credentials.operatorToken !== undefined : as === "operator";
  if (isOperator) return { api: settings.operator(), role: "operator", path: "/operator/v1/notifications" };
  const api = settings.partner();
  if (partner === undefined) return { api, role: "partner", path: "/v1/notifications" };
  throw new Failure("--partner is the operator's: a partner has its own notifications only.", {
    code: "bad_usage",
    remedy: "Leave it out, or give an operator token.",
  });
}

type RedeliverOptions = AsOption & {
  readonly json?: boolean;
  readonly yes?: boolean | undefined;
  readonly registered?: true | undefined;
  readonly dryRun?: true | undefined;
  readonly follow?: true | undefined;
  readonly wait?: true | undefined;
};

export function redeliverCommand(context: CommandContext): AnyCommand {
  const made = command("redeliver", {
    summary: "send notifications again",
    description:
      "By id, or all that match the filters: the operator's of every partner, a partner's its own. Each gets a whole " +
      "new schedule, under the same webhook-id. A pending one is sent now, and its schedule stays at its step.",
    examples: [
      "paybell notifications redeliver 01a1fc40-577c-728c-bd54-142edc79a51f",
      "paybell notifications redeliver --state parked --reason connect --dry-run",
      'paybell notifications redeliver --state pending --partner "Corner Shop"',
      "paybell notifications redeliver --as partner --state pending --since 1h --follow",
      "paybell notifications redeliver --state accepted --since 2026-11-21T08:00:00Z --registered",
    ],
    exitCodes: {
      0: "they are due; with --follow or --wait: delivered",
      1: "nothing matches, some of the ids could not be redelivered, or with --follow or --wait: not all are delivered",
    },
  })
    .argument("[ids...]", "notification ids; without any, the filters say which")
    .addOption(
      new Option("--state <state>", "accepted requires --since").choices(["pending", "parked", "accepted"] as const),
    )
    .option("--reason <word>", "of parked ones: why the last attempt failed")
    .option(...onlyPartner)
    .option("--since <time>", `at or after this time: ${timeForms}`, timeReader(context))
    .option("--until <time>", `before this time: ${timeForms}`, timeReader(context))
    .option("--registered", "to the registered URL, even if its command named one")
    .option("--dry-run", "only count")
    .option("--follow", "with filters: until each is delivered, or has failed again; it says when the next is tried")
    .option(...waitOption);
  const confirmed = withRole(withConfirmation(made, "with filters: do it without asking"));
  return calls(context, confirmed, async (settings, options, ids) => {
    const side = sideOf(settings, options);
    const { state, reason, since, until } = options;
    const partner = await partnerFilter(settings, options.partner);
    const filter: BulkFilter = definedOf({ state, reason, partner, from: since, to: until });
    const hasFilter = Object.keys(filter).length > 0;
    const isOfMany = hasFilter || options.dryRun === true || options.follow === true || options.wait === true;
    if (ids.length > 0 && isOfMany) throw ambiguous("ids exclude filters, --dry-run, --follow and --wait.");
    if (state === "accepted" && since === undefined) {
      throw new Failure("accepted notifications are sent again only with --since.", {
        code: "bad_usage",
        remedy: "Add a time: `paybell notifications redeliver --state accepted --since 1h`.",
      });
    }
    if (ids.length > 0) return redeliverIds(context, side, ids, options);
    if (hasFilter) return redeliverMany(context, side, filter, options);
    throw ambiguous("no notification is selected.");
  });
}

function ambiguous(message: string): Failure {
  return new Failure(message, {
    code: "bad_usage",
    remedy: "Give ids, or a filter: `paybell notifications redeliver --state parked`.",
  });
}

function toOf({ registered }: RedeliverOptions): "original" | "registered" {
  return registered === true ? "registered" : "original";
}

async function redeliverIds(
  context: CommandContext,
  { api, path }: ReturnType<typeof sideOf>,
  ids: readonly string[],
  options: RedeliverOptions,
): Promise<Result> {
  const result = await showing(context, "redelivering", ids.length, (onProgress) =>
    redeliverEach(api, path, ids, toOf(options), onProgress),
  );
  const { redelivered, held, refused } = result;
  const lines = [
    `${redelivered} of ${ids.length} ${isOrAre(redelivered)} due now.`,
    ...held.map(({ id, by }) => `  ${printable(id)}: ${heldBy[by]}`),
    ...refused.map(({ id, message }) => `  ${printable(id)}: ${message}`),
  ];
  return { value: result, lines, code: refused.length === 0 ? exitCodes.ok : exitCodes.negative };
}

const heldBy = {
  paused: "it waits, because its partner is paused",
  order: "it waits for an earlier one of its chain",
} as const;

function isOrAre(count: number): string {
  return count === 1 ? "is" : "are";
}

async function redeliverMany(
  context: CommandContext,
  side: Redeliverer,
  filter: BulkFilter,
  options: RedeliverOptions,
): Promise<Result> {
  const shares = await countMatching(side, filter);
  const matched = shares.reduce((sum, share) => sum + share.matched, 0);
  const whose = side.role === "operator" ? `of ${counted(shares.length, "partner")}` : "of yours";
  if (options.dryRun === true || matched === 0) {
    const value = { matched, redelivered: 0, partners: shares };
    if (matched === 0) return { value, lines: ["Nothing matches."], code: exitCodes.negative };
    return { value, lines: [`${matched} ${whose} match. Nothing was changed.`] };
  }
  await confirm(context, options, `${counted(matched, "notification")} ${whose} are sent.`);
  // At once: what fails, or is interrupted, from now on leaves some of them due.
  const tell = (begun: string) =>
    void context.stderr.write(`To ask later: paybell notifications progress ${begun} --follow\n`);
  const { id, redelivered, held } = await showing(context, "redelivering", matched, (onProgress) =>
    redeliverShares(side, shares, filter, toOf(options), onProgress, tell),
  );
  const result = { id, matched, redelivered, held, partners: shares };
  const due = [`${redelivered} ${isOrAre(redelivered)} due now, ${matched} ${whose} matched`, ...heldText(held)];
  const until = untilOf(options);
  if (id === null || until === "read") return { value: result, lines: [`${due.join("; ")}.`] };
  const progress = await showing(context, "delivering", redelivered, (onProgress) =>
    redeliveryProgress(context, side, { id, until, isKnown: true }, onProgress),
  );
  const shown = progressResult(progress);
  return { ...shown, value: { ...result, progress }, lines: [`${due.join("; ")}.`, ...shown.lines] };
}

export function progressCommand(context: CommandContext): AnyCommand {
  const made = command("progress", {
    summary: "show how much of a redelivery is delivered",
    description: "Of a redelivery by filters. It is known for 30 days.",
    examples: ["paybell notifications progress 01a1fc40-577c-728c-bd54-142edc79a51f --follow"],
    exitCodes: { 0: "all are delivered", 1: "some are pending, or parked again" },
  })
    .argument("<id>", "the redelivery's, from its output")
    .option("--follow", "until each is delivered, held back, or has failed again; it says when the next is tried")
    .option(...waitOption);
  return calls(context, withRole(made), async (settings, options, id) => {
    const side = sideOf(settings, { as: options.as });
    const progress = await showing(context, "delivering", undefined, (onProgress) =>
      redeliveryProgress(context, side, { id, until: untilOf(options), isKnown: false }, onProgress),
    );
    return progressResult(progress);
  });
}

function progressResult(progress: RedeliveryProgress): Result {
  const code = progress.delivered === progress.redelivered ? exitCodes.ok : exitCodes.negative;
  return { value: progress, lines: [`${progressText(progress)}.`], code };
}

type To = "original" | "registered";

/**
 * Redelivers each one separately.
 *
 * @param path of notifications, for the partner's role or the operator's
 * @param onProgress called after each, with the number requested so far
 */
async function redeliverEach(
  api: Api,
  path: string,
  ids: readonly string[],
  to: To,
  onProgress: (done: number) => void,
) {
  let [redelivered, done] = [0, 0];
  /** Still held back, by a pause or by the order of their chain. */
  const held: { id: string; by: keyof typeof heldBy }[] = [];
  const refused: { id: string; code: string; message: string }[] = [];
  for (const id of ids) {
    try {
      const answer = await api.post<{ held?: keyof typeof heldBy | null }>(
        `${path}/${encodeURIComponent(id)}/redeliver`,
        { to },
      );
      redelivered += 1;
      if (answer.held) held.push({ id, by: answer.held });
    } catch (error) {
      // An unknown id does not stop the others; an unavailable service does.
      if (!(error instanceof Failure) || (error.status !== 404 && error.status !== 409)) throw error;
      refused.push({ id, code: error.code, message: error.message });
    }
    done += 1;
    onProgress(done);
  }
  return { redelivered, held, refused };
}

export interface BulkFilter {
  readonly partner?: string;
  readonly state?: string;
  readonly reason?: string;
  readonly from?: string;
  readonly to?: string;
}

export interface Share {
  /** Absent: the partner that asks. */
  readonly partner?: string;
  readonly matched: number;
}

interface BulkAnswer {
  readonly id: string | null;
  readonly matched: number;
  readonly redelivered: number;
  readonly held: RedeliveryProgress["held"];
}

/** The number of matches by partner, without partners that have none. Changes nothing. */
export async function countMatching({ api, role }: Redeliverer, filter: BulkFilter): Promise<readonly Share[]> {
  const shares: Share[] = [];
  const all = role === "operator" && filter.partner === undefined ? await partnerIds(api) : [filter.partner];
  for (const partner of all) {
    const share = definedOf({ partner });
    const { matched } = await api.post<BulkAnswer>(pathOf(role), { filter: { ...filter, ...share }, dryRun: true });
    if (matched > 0) shares.push({ ...share, matched });
  }
  return shares;
}

/**
 * One request per partner, to show progress.
 *
 * @param onProgress called with the number requested so far
 * @param onBegun called with the redelivery's id, once the first are due
 */
export async function redeliverShares(
  { api, role }: Redeliverer,
  shares: readonly Share[],
  filter: BulkFilter,
  to: To,
  onProgress: (done: number) => void,
  onBegun: (id: string) => void = () => undefined,
): Promise<Pick<BulkAnswer, "id" | "redelivered" | "held">> {
  let [redelivered, done] = [0, 0];
  let id: string | null = null;
  const held = { paused: 0, order: 0 };
  for (const { matched, ...share } of shares) {
    const body = { filter: { ...filter, ...share }, to, ...(id !== null && { redelivery: id }) };
    const answer: BulkAnswer = await api.post(pathOf(role), body);
    if (id === null && answer.id !== null) onBegun(answer.id);
    id = answer.id ?? id;
    redelivered += answer.redelivered;
    held.paused += answer.held.paused;
    held.order += answer.held.order;
    done += matched;
    onProgress(done);
  }
  return { id, redelivered, held };
}

const askEveryMs = 1_000;

const waitOption = ["--wait", "as --follow, but until each is delivered, parked, or held by a pause"] as const;

const ends = {
  read: () => true,
  /** Nothing is sent now: what is pending waits for its schedule, or for a person. */
  follow: ({ due }: RedeliveryProgress) => due === 0,
  wait: ({ pending, held }: RedeliveryProgress) => pending === held.paused,
} as const;

function untilOf({ follow, wait }: Pick<RedeliverOptions, "follow" | "wait">): keyof typeof ends {
  if (wait === true) return "wait";
  return follow === true ? "follow" : "read";
}

interface Followed {
  readonly id: string;
  readonly until: keyof typeof ends;
  /** The service has answered about it. */
  readonly isKnown: boolean;
}

/** Reads what became of a redelivery, again and again until that. @param onProgress called after each reading */
async function redeliveryProgress(
  { signal, stderr }: CommandContext,
  { api, role }: Redeliverer,
  { id, until, isKnown }: Followed,
  onProgress: (done: number, total: number) => void,
): Promise<RedeliveryProgress> {
  for (let isBegun = isKnown; ; ) {
    try {
      const progress = await api.get<RedeliveryProgress>(`${pathOf(role)}/${encodeURIComponent(id)}`);
      isBegun = true;
      onProgress(progress.redelivered - progress.pending, progress.redelivered);
      if (signal.aborted || ends[until](progress)) return progress;
    } catch (error) {
      // A restart of the service is not the end: what was made due would be unknown, and perhaps made due once more.
      if (signal.aborted || !isBegun || !(error instanceof Failure) || !passes(error)) throw error;
      stderr.write(`${failureText(error)}\n`);
    }
    await sleep(askEveryMs, undefined, { signal }).catch(() => undefined);
  }
}

function progressText(progress: RedeliveryProgress): string {
  const { redelivered, delivered, parked, pending, failed, held, nextAttemptAt } = progress;
  const parts = [`${delivered} of ${redelivered} delivered`];
  if (pending > 0) parts.push(`${pending} pending`);
  if (failed > 0) parts.push(`${failed} of them failed again`);
  if (parked > 0) parts.push(`${parked} parked again`);
  const next = nextAttemptAt === null ? [] : [`the next attempt is at ${nextAttemptAt}`];
  return [parts.join(", "), ...heldText(held), ...next].join("; ");
}

function heldText({ paused, order }: RedeliveryProgress["held"]): string[] {
  return [
    ...(paused > 0 ? [`${paused} held: the partner is paused`] : []),
    ...(order > 0 ? [`${order} held: an earlier one of the chain is sent first`] : []),
  ];
}

function pathOf(role: Redeliverer["role"]): string {
  return role === "operator" ? "/operator/v1/redeliveries" : "/v1/redeliveries";
}

async function partnerIds(api: Api): Promise<string[]> {
  return (await readPages<RegisteredPartner>(api, "/operator/v1/partners")).map(({ id }) => id);
}
