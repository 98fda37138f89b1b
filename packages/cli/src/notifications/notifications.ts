import type { ListedNotification, NotificationDetail, NotificationPage } from "@paybell/partner/client";
import { type Command, Option } from "commander";
import type { Api } from "../client/api.ts";
import {
  type AccessOptions,
  type ClientSettings,
  partnerFilter,
  readClientSettings,
  withAccessOptions,
} from "../client/connection.ts";
import { definedOf } from "../client/credentials.ts";
import { type NewestOptions, printNewest, withNewest } from "../client/lists.ts";
import type { SealedNotification } from "../listen/opened.ts";
import { type CommandContext, command, ends, group } from "../shell/command.ts";
import { type ConfirmOption, confirm, counted, withConfirmation } from "../shell/confirm.ts";
import { type ExitCode, exitCodes, Failure } from "../shell/failure.ts";
import { timeForms, timeReader } from "../shell/options.ts";
import { columns, fieldColumns, type JsonOption, listed, print, printable, type TableColumn } from "../shell/output.ts";
import { showing } from "../shell/progress.ts";
import { attemptLines, eventLine, findSealed, type NotificationEvent, statusText, subjectText } from "./detail.ts";
import {
  type BulkFilter,
  countMatching,
  heldText,
  progressText,
  type Redeliverer,
  redeliverEach,
  redeliverShares,
  redeliveryProgress,
} from "./redeliver.ts";

export function notificationsCommand(context: CommandContext): Command {
  const commands = [listCommand, showCommand, redeliverCommand, progressCommand].map((make) => make(context));
  return group("notifications", "list notifications, show one with its attempts, have some sent again", commands);
}

interface AsOption {
  readonly as?: "operator" | "partner";
}

function withRole(made: Command): Command {
  const as = new Option("--as <role>", "whose view; default: the operator's if there is an operator token");
  return withAccessOptions(made).addOption(as.choices(["operator", "partner"]));
}

function isOperator({ credentials }: ClientSettings, { as }: AsOption): boolean {
  return as === undefined ? credentials.operatorToken !== undefined : as === "operator";
}

/** The caller's role, and its routes for notifications. */
function sideOf(connection: ClientSettings, as: AsOption): Redeliverer & { readonly path: string } {
  return isOperator(connection, as)
    ? { api: connection.operator(), role: "operator", path: "/operator/v1/notifications" }
    : { api: connection.partner(), role: "partner", path: "/v1/notifications" };
}

/** A partner sees its own notifications only. */
function refusePartnerFilter({ role }: Redeliverer, { partner }: { readonly partner?: string }): void {
  if (role === "operator" || partner === undefined) return;
  throw new Failure("--partner is the operator's: a partner has its own notifications only.", {
    code: "bad_usage",
    remedy: "Leave it out, or give an operator token.",
  });
}

interface ListOptions extends AccessOptions, NewestOptions, AsOption {
  readonly partner?: string;
  readonly state?: string;
  readonly reason?: string;
  readonly q?: string;
  readonly until?: string;
  readonly after?: string;
}

const states = ["pending", "accepted", "parked"] as const;

function listCommand(context: CommandContext): Command {
  const made = command("list", {
    summary: "list notifications",
    description:
      "As the operator: those of every partner, newest first. As a partner: its own, newest first with a filter or " +
      "--follow, otherwise in commit order, with the cursor to continue from.",
    examples: [
      "paybell notifications list --state parked --since 2d",
      "paybell notifications list --q order-1",
      'paybell notifications list --partner "Corner Shop" --follow',
      "paybell notifications list --as partner --limit 500",
    ],
  })
    .option("--partner <partner>", "operator: only those of this partner, by id or name")
    .addOption(new Option("--state <state>", "only those in this state").choices(states))
    .option("--reason <word>", "with --state parked: why the last attempt failed")
    .option("--q <text>", "a notification id, transaction id, reqId, externalId or merchantTransId")
    .option("--until <time>", `before this time: ${timeForms}`, timeReader(context))
    .option("--after <cursor>", "partner, without a filter: after this cursor, from an earlier page");
  return withRole(withNewest(context, made)).action(
    ends(context, (options: ListOptions) => list(context, options), "finishes"),
  );
}

async function list(context: CommandContext, options: ListOptions): Promise<ExitCode> {
  const connection = await readClientSettings(context, options);
  const side = sideOf(connection, options);
  refusePartnerFilter(side, options);
  const { state, reason, q, since, until, after, follow = false } = options;
  const partner = await partnerFilter(connection, options.partner);
  const query = { partner, state, reason, q, from: since, to: until };
  const hasFilter = Object.values(query).some((filter) => filter !== undefined);
  if (side.role === "partner" && !hasFilter && !follow) return listInOrder(context, side.api, options);
  if (after !== undefined) {
    throw new Failure("--after is a cursor of a partner's notifications in commit order.", {
      code: "bad_usage",
      remedy: "Leave it out, or use it without filters: `paybell notifications list --as partner --after <cursor>`.",
    });
  }
  return printNewest<ListedNotification>(context, options, {
    ...{ plural: "notifications", api: side.api, query, columns: notificationColumns },
    path: side.role === "operator" ? side.path : `${side.path}/search`,
    idOf: ({ id }) => id,
    timeOf: ({ createdAt }) => createdAt,
  });
}

const notificationColumns: readonly TableColumn<ListedNotification>[] = [
  ["created at", ({ createdAt }) => createdAt],
  ["partner", ({ partnerName }) => partnerName],
  ["command", (one) => one.command],
  ["amount", (one) => subjectText(one)[0]],
  ["reference", (one) => subjectText(one)[1]],
  ["id", ({ id }) => id],
  ["reason", ({ lastReason }) => lastReason],
  ["state", statusText],
];

/** A partner's own, in commit order. */
async function listInOrder(context: CommandContext, api: Api, options: ListOptions): Promise<ExitCode> {
  const items: SealedNotification[] = [];
  const { limit } = options;
  let { after } = options;
  await showing(context, "reading notifications", limit, async (onProgress) => {
    while (items.length < limit) {
      const query = { after, limit: Math.min(500, limit - items.length) };
      const page = await api.get<NotificationPage>("/v1/notifications", query);
      after = page.next;
      items.push(...page.items);
      onProgress(items.length);
      if (page.items.length === 0) break;
    }
  });
  print(context, options, { items, next: after }, [
    ...listed(items, orderedColumns),
    "",
    `What follows: paybell notifications list --as partner --after ${after}`,
  ]);
  return exitCodes.ok;
}

const orderedColumns = fieldColumns<SealedNotification>("createdAt", "kind", "id", "state");

interface ShowOptions extends AccessOptions, JsonOption, AsOption {
  readonly sealed: boolean;
}

function showCommand(context: CommandContext): Command {
  const made = command("show", {
    summary: "show a notification with its attempts: did they get it, and if not why",
    description:
      "With --json and an API key it also has `sealed {body, headers}`, the input of `paybell open`. The command " +
      "searches the pull API for it, from the oldest on: --no-sealed leaves it out.",
    examples: [
      "paybell notifications show 01a1fc40-577c-728c-bd54-142edc79a51f",
      "paybell notifications show 01a1fc40-577c-728c-bd54-142edc79a51f --json | paybell open -",
    ],
    exitCodes: { 0: "it was accepted, or is pending", 1: "it is parked" },
  })
    .argument("<id>", "the notification's, as in webhook-id")
    .option("--no-sealed", "with --json: without the sealed body and its headers");
  return withRole(made).action(ends(context, (id: string, options: ShowOptions) => show(context, id, options)));
}

async function show(context: CommandContext, id: string, options: ShowOptions): Promise<ExitCode> {
  const connection = await readClientSettings(context, options);
  const { api, path } = sideOf(connection, options);
  const detail = await api.get<NotificationDetail & { readonly events?: readonly NotificationEvent[] }>(
    `${path}/${encodeURIComponent(id)}`,
  );
  const sealed = options.json === true && options.sealed ? await sealedOf(context, connection, detail) : undefined;
  const { command: name, kind, transactionId, createdAt, callBackUrl, attempts, events = [] } = detail;
  print(context, options, { ...detail, ...(sealed && { sealed }) }, [
    `${name}  ${kind}  ${id}`,
    statusText(detail),
    ...columns([
      ["transaction", transactionId ?? "none: a test"],
      ["partner", printable(`${detail.partnerName} (${detail.partnerId})`)],
      [
        "subject",
        subjectText(detail)
          .filter((part) => part !== "")
          .join("  ") || "none",
      ],
      ["created", createdAt],
      ["callBackUrl", printable(callBackUrl ?? "none of its own: the registered one")],
    ]),
    ...attempts.flatMap((attempt) => ["", `${attempt.startedAt}`, ...attemptLines(attempt)]),
    ...(events.length === 0 ? [] : ["", ...events.map(eventLine)]),
  ]);
  return detail.state === "parked" ? exitCodes.negative : exitCodes.ok;
}

async function sealedOf(context: CommandContext, connection: ClientSettings, detail: NotificationDetail) {
  const { apiKey, partnerId } = connection.credentials;
  // The operator may look at another partner's, which our API key does not open.
  if (apiKey === undefined || (partnerId !== undefined && partnerId !== detail.partnerId)) return undefined;
  const api = connection.partner();
  return showing(context, "looking for its sealed body", undefined, (onProgress) =>
    findSealed(api, detail, onProgress),
  );
}

interface RedeliverOptions extends AccessOptions, JsonOption, AsOption, ConfirmOption {
  readonly state?: string;
  readonly reason?: string;
  readonly partner?: string;
  readonly since?: string;
  readonly until?: string;
  readonly registered?: boolean;
  readonly dryRun?: boolean;
  readonly follow?: boolean;
}

function redeliverCommand(context: CommandContext): Command {
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
      0: "they are due; with --follow: delivered",
      1: "nothing matches, some of the ids could not be redelivered, or with --follow: not all are delivered",
    },
  })
    .argument("[ids...]", "notification ids; without any, the filters say which")
    .addOption(new Option("--state <state>", "accepted requires --since").choices(["pending", "parked", "accepted"]))
    .option("--reason <word>", "of parked ones: why the last attempt failed")
    .option("--partner <partner>", "operator: only those of this partner, by id or name")
    .option("--since <time>", `created at or after this time: ${timeForms}`, timeReader(context))
    .option("--until <time>", `created before this time: ${timeForms}`, timeReader(context))
    .option("--registered", "to the registered URL, even if its command named one")
    .option("--dry-run", "only count")
    .option("--follow", "with filters: wait until each is delivered or parked");
  return withRole(withConfirmation(made, "with filters: do it without asking")).action(
    ends(context, (ids: string[], options: RedeliverOptions) => redeliver(context, ids, options)),
  );
}

async function redeliver(
  context: CommandContext,
  ids: readonly string[],
  options: RedeliverOptions,
): Promise<ExitCode> {
  const connection = await readClientSettings(context, options);
  const side = sideOf(connection, options);
  refusePartnerFilter(side, options);
  const { state, reason, since, until } = options;
  const partner = await partnerFilter(connection, options.partner);
  const filter: BulkFilter = definedOf({ state, reason, partner, from: since, to: until });
  const hasFilter = Object.keys(filter).length > 0;
  const isOfMany = hasFilter || options.dryRun === true || options.follow === true;
  if (ids.length > 0 && isOfMany) throw ambiguous("ids exclude filters, --dry-run and --follow.");
  if (state === "accepted" && since === undefined) {
    throw new Failure("accepted notifications are sent again only with --since.", {
      code: "bad_usage",
      remedy: "Add a time: `paybell notifications redeliver --state accepted --since 1h`.",
    });
  }
  if (ids.length > 0) return redeliverIds(context, side, ids, options);
  if (hasFilter) return redeliverMany(context, side, filter, options);
  throw ambiguous("no notification is selected.");
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
): Promise<ExitCode> {
  const result = await showing(context, "redelivering", ids.length, (onProgress) =>
    redeliverEach(api, path, ids, toOf(options), onProgress),
  );
  const { redelivered, held, refused } = result;
  print(context, options, result, [
    `${redelivered} of ${ids.length} ${isOrAre(redelivered)} due now.`,
    ...held.map(({ id, by }) => `  ${printable(id)}: ${heldBy[by]}`),
    ...refused.map(({ id, message }) => `  ${printable(id)}: ${message}`),
  ]);
  return refused.length === 0 ? exitCodes.ok : exitCodes.negative;
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
): Promise<ExitCode> {
  const shares = await countMatching(side, filter);
  const matched = shares.reduce((sum, share) => sum + share.matched, 0);
  const whose = side.role === "operator" ? `of ${counted(shares.length, "partner")}` : "of yours";
  if (options.dryRun === true || matched === 0) {
    print(context, options, { matched, redelivered: 0, partners: shares }, [
      matched === 0 ? "Nothing matches." : `${matched} ${whose} match. Nothing was changed.`,
    ]);
    return matched === 0 ? exitCodes.negative : exitCodes.ok;
  }
  await confirm(context, options, `${counted(matched, "notification")} ${whose} are sent.`);
  const { id, redelivered, held } = await showing(context, "redelivering", matched, (onProgress) =>
    redeliverShares(side, shares, filter, toOf(options), onProgress),
  );
  const result = { id, matched, redelivered, held, partners: shares };
  const due = [`${redelivered} ${isOrAre(redelivered)} due now, ${matched} ${whose} matched`, ...heldText(held)];
  if (id === null || options.follow !== true) {
    const next = id === null ? [] : [`Until they are delivered: paybell notifications progress ${id} --follow`];
    print(context, options, result, [`${due.join("; ")}.`, ...next]);
    return exitCodes.ok;
  }
  const progress = await showing(context, "delivering", redelivered, (onProgress) =>
    redeliveryProgress(side, id, context.signal, onProgress),
  );
  print(context, options, { ...result, progress }, [`${due.join("; ")}.`, `${progressText(progress)}.`]);
  return progress.delivered === progress.redelivered ? exitCodes.ok : exitCodes.negative;
}

interface ProgressOptions extends AccessOptions, JsonOption, AsOption {
  readonly follow?: boolean;
}

function progressCommand(context: CommandContext): Command {
  const made = command("progress", {
    summary: "show how much of a redelivery is delivered",
    description: "Of a redelivery by filters. It is known for 30 days.",
    examples: ["paybell notifications progress 01a1fc40-577c-728c-bd54-142edc79a51f --follow"],
    exitCodes: { 0: "all are delivered", 1: "some are pending, or parked again" },
  })
    .argument("<id>", "the redelivery's, from its output")
    .option("--follow", "wait until each is delivered or parked, or held by a pause");
  return withRole(made).action(
    ends(context, async (id: string, options: ProgressOptions) => {
      const side = sideOf(await readClientSettings(context, options), options);
      const signal = options.follow === true ? context.signal : undefined;
      const progress = await showing(context, "delivering", undefined, (onProgress) =>
        redeliveryProgress(side, id, signal, onProgress),
      );
      print(context, options, progress, [`${progressText(progress)}.`]);
      return progress.delivered === progress.redelivered ? exitCodes.ok : exitCodes.negative;
    }),
  );
}
