import type { ListedNotification, NotificationDetail, NotificationPage } from "@paybell/partner/client";
import { type Command, Option } from "commander";
import type { Api } from "../api.ts";
import { command, ends, group } from "../command.ts";
import { type ConfirmOption, confirm, counted, withConfirmation } from "../confirm.ts";
import { type AccessOptions, type ClientSettings, readClientSettings, withAccessOptions } from "../connection.ts";
import type { CommandContext } from "../context.ts";
import { definedOf } from "../credentials.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import type { SealedNotification } from "../listen/notification.ts";
import { attemptLines, eventLine, type NotificationEvent, statusText, subjectText } from "../notifications/detail.ts";
import { type BulkFilter, countMatching, redeliverEach, redeliverShares } from "../notifications/redeliver.ts";
import { findSealed } from "../notifications/sealed.ts";
import { wholeNumber } from "../numbers.ts";
import { columns, type JsonOption, listed, print } from "../output.ts";
import { printable } from "../printable.ts";
import { showing } from "../progress.ts";
import { readPages } from "../read-pages.ts";
import { readTime } from "../times.ts";

export function notificationsCommand(context: CommandContext): Command {
  const commands = [listCommand, showCommand, redeliverCommand].map((make) => make(context));
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
function sideOf(connection: ClientSettings, as: AsOption): { readonly api: Api; readonly path: string } {
  return isOperator(connection, as)
    ? { api: connection.operator(), path: "/operator/v1/notifications" }
    : { api: connection.partner(), path: "/v1/notifications" };
}

interface ListOptions extends AccessOptions, JsonOption, AsOption {
  readonly partner?: string;
  readonly state?: string;
  readonly reason?: string;
  readonly q?: string;
  readonly since?: string;
  readonly until?: string;
  readonly after?: string;
  readonly limit: number;
}

const states = ["pending", "accepted", "parked"] as const;

function listCommand(context: CommandContext): Command {
  const made = command("list", {
    summary: "list notifications",
    description:
      "As the operator: those of every partner, newest first. As a partner: its own, in commit order, " +
      "with the cursor to continue from.",
    examples: [
      "paybell notifications list --state parked",
      "paybell notifications list --q order-1",
      "paybell notifications list --as partner --limit 500",
    ],
  })
    .option("--partner <id>", "operator: of one partner")
    .addOption(new Option("--state <state>", "operator: only those in this state").choices(states))
    .option("--reason <word>", "operator: with --state parked: why the last attempt failed")
    .option("--q <text>", "operator: a notification id, transaction id, reqId, externalId or merchantTransId")
    .option("--since <time>", "operator: created at or after this time, ISO 8601", readTime)
    .option("--until <time>", "operator: created before this time, ISO 8601", readTime)
    .option("--after <cursor>", "partner: after this cursor, from an earlier page")
    .addOption(new Option("--limit <n>", "at most this many").default(50).argParser(wholeNumber(1, 9_999_999)));
  return withRole(made).action(ends(context, (options: ListOptions) => list(context, options)));
}

async function list(context: CommandContext, options: ListOptions): Promise<ExitCode> {
  const connection = await readClientSettings(context, options);
  return isOperator(connection, options)
    ? listForOperator(context, connection, options)
    : listForPartner(context, connection, options);
}

async function listForOperator(
  context: CommandContext,
  connection: ClientSettings,
  options: ListOptions,
): Promise<ExitCode> {
  const { partner, state, reason, q, since, until, limit } = options;
  const query = { partner, state, reason, q, from: since, to: until };
  const api = connection.operator();
  const items = await showing(context, "reading notifications", limit, (onProgress) =>
    readPages<ListedNotification>(api, "/operator/v1/notifications", query, { itemsMax: limit, onProgress }),
  );
  const rows = items.map((item) => [
    item.createdAt,
    printable(item.partnerName),
    item.command,
    ...subjectText(item),
    item.id,
    item.lastReason ?? "",
    statusText(item),
  ]);
  print(context, options, { items }, listed(rows));
  return exitCodes.ok;
}

async function listForPartner(
  context: CommandContext,
  connection: ClientSettings,
  options: ListOptions,
): Promise<ExitCode> {
  const { partner, state, reason, q, since, until, limit } = options;
  if ([partner, state, reason, q, since, until].some((filter) => filter !== undefined)) {
    throw new Failure("a partner's notifications cannot be searched: they are read in commit order.", {
      code: "partner_cannot_search",
      remedy: "Leave the filters out, or give an operator token.",
    });
  }
  const api = connection.partner();
  const items: SealedNotification[] = [];
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
  const rows = items.map(({ createdAt, kind, id, state: now }) => [createdAt, kind, id, now]);
  print(context, options, { items, next: after }, [...columns(rows), "", `Go on with --after ${after}`]);
  return exitCodes.ok;
}

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
}

function redeliverCommand(context: CommandContext): Command {
  const made = command("redeliver", {
    summary: "send notifications again",
    description:
      "By id, as the operator or as the partner; or all that match the filters, as the operator. Each gets a " +
      "whole new schedule, under the same webhook-id. A pending one is sent now, and its schedule stays at its step.",
    examples: [
      "paybell notifications redeliver 01a1fc40-577c-728c-bd54-142edc79a51f",
      "paybell notifications redeliver --state parked --reason connect --dry-run",
      "paybell notifications redeliver --state pending --partner 01a1fc39-e58e-73fb-a49a-dce132454876",
      "paybell notifications redeliver --state accepted --since 2026-11-21T08:00:00Z --registered",
    ],
    exitCodes: { 0: "they are due", 1: "nothing matches, or some of the ids could not be redelivered" },
  })
    .argument("[ids...]", "notification ids; without any, the filters say which")
    .addOption(new Option("--state <state>", "accepted requires --since").choices(["pending", "parked", "accepted"]))
    .option("--reason <word>", "of parked ones: why the last attempt failed")
    .option("--partner <id>", "of one partner")
    .option("--since <time>", "created at or after this time, ISO 8601", readTime)
    .option("--until <time>", "created before this time, ISO 8601", readTime)
    .option("--registered", "to the registered URL, even if its command named one")
    .option("--dry-run", "only count");
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
  const { state, reason, partner, since, until } = options;
  const filter: BulkFilter = definedOf({ state, reason, partner, from: since, to: until });
  const hasFilter = Object.keys(filter).length > 0;
  if (ids.length > 0 && (hasFilter || options.dryRun === true)) throw ambiguous("ids and filters exclude each other.");
  if (hasFilter && options.as === "partner") {
    throw new Failure("a partner selects by ids only.", {
      code: "bad_usage",
      remedy: "Give ids. Filters are the operator's: leave out --as partner.",
    });
  }
  if (state === "accepted" && since === undefined) {
    throw new Failure("accepted notifications are sent again only with --since.", {
      code: "bad_usage",
      remedy: "Add a time, such as --since 2026-11-21T08:00:00Z.",
    });
  }
  if (ids.length > 0) return redeliverIds(context, connection, ids, options);
  if (hasFilter) return redeliverMany(context, connection, filter, options);
  throw ambiguous("no notification is selected.");
}

function ambiguous(message: string): Failure {
  return new Failure(message, { code: "bad_usage", remedy: "Give ids, or a filter such as --state parked." });
}

function toOf({ registered }: RedeliverOptions): "original" | "registered" {
  return registered === true ? "registered" : "original";
}

async function redeliverIds(
  context: CommandContext,
  connection: ClientSettings,
  ids: readonly string[],
  options: RedeliverOptions,
): Promise<ExitCode> {
  const { api, path } = sideOf(connection, options);
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
  connection: ClientSettings,
  filter: BulkFilter,
  options: RedeliverOptions,
): Promise<ExitCode> {
  const api = connection.operator();
  const shares = await countMatching(api, filter);
  const matched = shares.reduce((sum, share) => sum + share.matched, 0);
  const where = `${matched} of ${counted(shares.length, "partner")}`;
  if (options.dryRun === true || matched === 0) {
    print(context, options, { matched, redelivered: 0, partners: shares }, [
      matched === 0 ? "Nothing matches." : `${where} match. Nothing was changed.`,
    ]);
    return matched === 0 ? exitCodes.negative : exitCodes.ok;
  }
  await confirm(
    context,
    options,
    `${counted(matched, "notification")} of ${counted(shares.length, "partner")} are sent.`,
  );
  const redelivered = await showing(context, "redelivering", matched, (onProgress) =>
    redeliverShares(api, shares, filter, toOf(options), onProgress),
  );
  print(context, options, { matched, redelivered, partners: shares }, [
    `${redelivered} ${isOrAre(redelivered)} due now, ${where} matched.`,
  ]);
  return exitCodes.ok;
}
