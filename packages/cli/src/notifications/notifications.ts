import { Option } from "@commander-js/extra-typings";
import type {
  ListedNotification,
  Notification,
  NotificationDetail,
  NotificationPage,
  SealedNotification,
} from "@paybell/partner/client";
import type { Api } from "../client/api.ts";
import { type ClientSettings, calls, onlyPartner, partnerFilter } from "../client/connection.ts";
import { definedOf } from "../client/credentials.ts";
import { newest, withNewest } from "../client/lists.ts";
import type { InspectedNotification } from "../client/operator-api.ts";
import { bodyOf } from "../listen/feed.ts";
import { type AnyCommand, command, group } from "../shell/command.ts";
import type { CommandContext } from "../shell/context.ts";
import { exitCodes, Failure } from "../shell/failure.ts";
import { streamToPrivateFile } from "../shell/files.ts";
import { outOption, readDay, timeForms, timeReader } from "../shell/options.ts";
import { columns, fieldColumns, itemsOf, printable, type Result, showing, type TableColumn } from "../shell/output.ts";
import { progressCommand, redeliverCommand, sideOf, withRole } from "./redeliver.ts";

export function notificationsCommand(context: CommandContext): AnyCommand {
  const commands = [listCommand, showCommand, redeliverCommand, progressCommand].map((make) => make(context));
  return group("notifications", "list notifications, show one with its attempts, have some sent again", commands);
}

const states = ["pending", "accepted", "parked"] as const;

function listCommand(context: CommandContext): AnyCommand {
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
    .option(...onlyPartner)
    .addOption(new Option("--state <state>", "only those in this state").choices(states))
    .option("--reason <word>", "with --state parked: why the last attempt failed")
    .option("--q <text>", "a notification id, transaction id, reqId, externalId or merchantTransId")
    .option("--until <time>", `before this time: ${timeForms}`, timeReader(context))
    .option("--after <cursor>", "partner, without a filter: after this cursor, from an earlier page");
  const list = withRole(withNewest(context, made));
  return calls(
    context,
    list,
    async (settings, options) => {
      const side = sideOf(settings, options);
      const { state, reason, q, since, until, after, limit, follow = false } = options;
      const partner = await partnerFilter(settings, options.partner);
      const query = { partner, state, reason, q, from: since, to: until };
      const hasFilter = Object.values(query).some((filter) => filter !== undefined);
      if (side.role === "partner" && !hasFilter && !follow) return listInOrder(context, side.api, limit, after);
      if (after !== undefined) {
        throw new Failure("--after is a cursor of a partner's notifications in commit order.", {
          code: "bad_usage",
          remedy:
            "Leave it out, or use it without filters: `paybell notifications list --as partner --after <cursor>`.",
        });
      }
      return newest<ListedNotification>(context, options, {
        ...{ plural: "notifications", api: side.api, query, columns: notificationColumns },
        path: side.role === "operator" ? side.path : `${side.path}/search`,
        idOf: ({ id }) => id,
        timeOf: ({ createdAt }) => createdAt,
      });
    },
    "finishes",
  );
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

type PulledNotification = NotificationPage["items"][number];

/** A partner's own, in commit order. */
async function listInOrder(context: CommandContext, api: Api, limit: number, from?: string): Promise<Result> {
  const items: PulledNotification[] = [];
  let after = from;
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
  const { lines } = itemsOf(items, fieldColumns<PulledNotification>("createdAt", "kind", "id", "state"));
  const next = `What follows: paybell notifications list --as partner --after ${after}`;
  return { value: { items, next: after }, lines: [...lines, "", next] };
}

function showCommand(context: CommandContext): AnyCommand {
  const made = command("show", {
    summary: "show a notification with its attempts: did they get it, and if not why",
    description:
      "With --json and an API key it also has `sealed {body, headers}`, the POST as it would be made now, which is " +
      "the input of `paybell open`. It does not count as pulled.",
    examples: [
      "paybell notifications show 01a1fc40-577c-728c-bd54-142edc79a51f",
      "paybell notifications show 01a1fc40-577c-728c-bd54-142edc79a51f --json | paybell open -",
    ],
    exitCodes: { 0: "it was accepted, or is pending", 1: "it is parked" },
  })
    .argument("<id>", "the notification's, as in webhook-id")
    .option("--no-sealed", "with --json: without the sealed body and its headers");
  return calls(context, withRole(made), async (settings, options, id) => {
    const { api, path } = sideOf(settings, { as: options.as });
    const detail = await api.get<ShownNotification>(`${path}/${encodeURIComponent(id)}`);
    const sealed = options.json === true && options.sealed ? await sealedOf(settings, detail) : undefined;
    const code = detail.state === "parked" ? exitCodes.negative : exitCodes.ok;
    return { value: { ...detail, ...(sealed && { sealed }) }, lines: detailLines(detail), code };
  });
}

function detailLines(detail: ShownNotification): string[] {
  const { id, command: name, kind, transactionId, createdAt, callBackUrl, attempts, events = [] } = detail;
  const subject = subjectText(detail).filter((part) => part !== "");
  return [
    `${name}  ${kind}  ${id}`,
    statusText(detail),
    ...columns([
      ["transaction", transactionId ?? "none: a test"],
      ["partner", printable(`${detail.partnerName} (${detail.partnerId})`)],
      ["subject", subject.join("  ") || "none"],
      ["created", createdAt],
      ["callBackUrl", printable(callBackUrl ?? "none of its own: the registered one")],
    ]),
    ...attempts.flatMap((attempt) => ["", `${attempt.startedAt}`, ...attemptLines(attempt)]),
    ...(events.length === 0 ? [] : ["", ...events.map(eventLine)]),
  ];
}

/** Its POST as it would be made now. Undefined if our API key does not open it, or its content is not as committed. */
async function sealedOf({ credentials, partner }: ClientSettings, { id, partnerId }: NotificationDetail) {
  const { apiKey, partnerId: own } = credentials;
  // The operator may look at another partner's, which our API key does not open.
  if (apiKey === undefined || (own !== undefined && own !== partnerId)) return undefined;
  try {
    const path = `/v1/notifications/${encodeURIComponent(id)}/sealed`;
    const { data, headers } = await partner().get<SealedNotification>(path);
    return { body: bodyOf({ data }), headers };
  } catch (error) {
    if (error instanceof Failure && (error.code === "not_found" || error.code === "content_changed")) return undefined;
    throw error;
  }
}

type Attempt = NotificationDetail["attempts"][number];

/** Its events are in the operator's answer only. */
type ShownNotification = NotificationDetail & Partial<Pick<InspectedNotification, "events">>;

type WaitingBecause = NonNullable<Notification["waiting"]>["because"];

const waitingFor: Readonly<Record<WaitingBecause, (one: Notification) => string>> = {
  paused: () => "pending: its partner is paused, and it leaves when the partner is resumed",
  disabled: () => "pending: its partner is disabled",
  gone: () => "pending: its URL answered 410, and is tried again when somebody closes the endpoint",
  circuit: ({ nextAttemptAt, waiting }) =>
    `pending: its endpoint ${printable(waiting?.target ?? "")} fails (${waiting?.reason ?? "no reason"}), ` +
    `and is tried again at ${nextAttemptAt}`,
  order: ({ waiting }) => `pending: it leaves after ${waiting?.after}, an earlier one of its chain`,
  retry: ({ nextAttemptAt }) => `pending, tried again at ${nextAttemptAt}`,
  turn: () => "pending: it is due, and waits for a free slot or its partner's rate",
};

/** Amount and reference: `150000 VND order-1`. */
function subjectText({ subject }: ListedNotification): readonly [string, string] {
  const { amount, currency, merchantTransId } = subject;
  return [[amount, currency].filter((part) => part).join(" "), printable(merchantTransId ?? "")];
}

/** Its status, in one sentence. */
export function statusText(one: Notification): string {
  const { state, outcomeAt, attemptsMade, waiting } = one;
  if (state === "accepted") return `accepted at ${outcomeAt}, attempt ${attemptsMade}`;
  if (state === "parked") return `parked after ${attemptsMade} attempts: kept, and sent again when you ask for it`;
  return waitingFor[waiting?.because ?? "turn"](one);
}

/** `attempt 1  →  https://… 204  12 ms`, and why where it was not accepted. */
export function attemptLines(attempt: Attempt): string[] {
  const { attemptNo, url, httpStatus, durationMs, reason, detail, answer } = attempt;
  const took = `${Math.round(durationMs)} ms`;
  const why = reason === null ? [] : [[reason, detail].filter((text) => text !== null && text !== "").join(": ")];
  return [
    printable(`attempt ${attemptNo}  → ${url}  ${httpStatus ?? "no status"}  ${took}`),
    ...why.map((line) => `           ${printable(line)}`),
    ...(answer === null || answer === "" ? [] : [`           it answered: ${printable(answer)}`]),
  ];
}

/** `2026-11-21T10:00:00.000Z  parked  {"reason":"tls"}` */
function eventLine({ kind, at, detail }: InspectedNotification["events"][number]): string {
  return printable(`${at}  ${kind}  ${JSON.stringify(detail)}`);
}

export function historyCommand(context: CommandContext): AnyCommand {
  return group("history", "keep the history of notifications elsewhere", [exportCommand(context)]);
}

function exportCommand(context: CommandContext): AnyCommand {
  const made = command("export", {
    summary: "write a day of history to a file: notifications with their attempts",
    description:
      "Do this before the day is dropped, after PAYBELL_HISTORY_DAYS. Days are in UTC, and are exported from a " +
      "minute after their end on. Card data are masked. JSON lines have the whole content and every attempt; CSV has the fields " +
      "by which people search, and the last attempt. The file gets its name when it is complete.",
    examples: [
      "paybell history export --day 2026-11-21 --out 2026-11-21.jsonl",
      "paybell history export --day 2026-11-21 --format csv --out 2026-11-21.csv",
    ],
    json: false,
  })
    .requiredOption("--day <day>", "such as 2026-11-21", readDay)
    .addOption(
      new Option("--format <format>", "how a line is written")
        .choices(["json-lines", "csv"] as const)
        .default("json-lines"),
    )
    .option(...onlyPartner)
    .requiredOption(...outOption);
  return calls(context, made, async (settings, { day, format, partner, out }) => {
    const query = definedOf({ format, partner: await partnerFilter(settings, partner) });
    const api = settings.operator();
    const lines = await streamToPrivateFile(context, out, () => api.stream(`/operator/v1/history/${day}`, query));
    const notifications = format === "csv" ? lines - 1 : lines;
    context.stdout.write(`Wrote ${notifications} notifications of ${day} to ${out}.\n`);
    return exitCodes.ok;
  });
}
