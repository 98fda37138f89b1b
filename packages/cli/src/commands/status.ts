import type { Backlog } from "@paybell/partner/client";
import { type Command, Option } from "commander";
import { command, ends } from "../command.ts";
import { type AccessOptions, callsAsPartner, readClientSettings, withAccessOptions } from "../connection.ts";
import type { CommandContext } from "../context.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { wholeNumber } from "../numbers.ts";
import { columns, type JsonOption, print } from "../output.ts";
import { printable } from "../printable.ts";
import { showing } from "../progress.ts";
import { type TroubleView, troubleLines } from "../status/overview.ts";
import { type DeliveryStatus, readStatus } from "../status/status.ts";
import { type Style, styleFor } from "../style.ts";

interface StatusOptions extends AccessOptions, JsonOption {
  readonly keysWithin: number;
}

export function statusCommand(context: CommandContext): Command {
  const made = command("status", {
    summary: "show trouble now, whether the service is ready, the backlog, failing endpoints, and expiring keys",
    description:
      "It begins with the partners that do not receive their notifications: what is wrong, since when, how many wait, " +
      "the next try, and when parking begins. With an API key and no operator token it shows this of that partner.",
    examples: ["paybell status", "PAYBELL_URL=https://paybell.example paybell status --json"],
    exitCodes: { 0: "the service is ready; of a partner: it is not in trouble", 1: "it is not ready, or in trouble" },
  }).addOption(
    new Option("--keys-within <days>", "list keys that expire within this many days")
      .default(14)
      .argParser(wholeNumber(0, 9_999)),
  );
  return withAccessOptions(made).action(ends(context, (options: StatusOptions) => status(context, options)));
}

async function status(context: CommandContext, options: StatusOptions): Promise<ExitCode> {
  const { keysWithin: keysWithinDays } = options;
  const connection = await readClientSettings(context, options);
  const view = { style: styleFor(context.stdout, context.env), nowMs: context.nowMs() };
  if (callsAsPartner(connection, undefined)) {
    const backlog = await connection.partner().get<Backlog>("/v1/backlog");
    print(context, options, backlog, backlogLines(backlog, view));
    return backlog.trouble === null ? exitCodes.ok : exitCodes.negative;
  }
  const operator = connection.operator();
  const found = await showing(context, "reading partners", undefined, (counted) =>
    readStatus(connection.anyone(), operator, { keysWithinDays, nowMs: view.nowMs, counted }),
  );
  print(context, options, found, [
    ...troubleLines(found.trouble, view),
    "",
    ...linesOf(found, keysWithinDays, view.style),
  ]);
  return found.ready ? exitCodes.ok : exitCodes.negative;
}

function linesOf(
  { ready, checks, backlog, endpoints, keysEnding, partners }: DeliveryStatus,
  days: number,
  style: Style,
): string[] {
  return [
    ready ? style.good("Ready") : style.bad("Not ready"),
    ...columns(Object.entries(checks).map(([name, check]) => [`  ${signOf(check)}`, name, printable(check.detail)])),
    "",
    `Backlog    ${backlogText(backlog)}`,
    ...(backlog === null ? [] : [`Parked     ${parkedText(backlog)}`]),
    `Partners   ${partners.total}, ${partners.paused} paused, ${partners.disabled} disabled`,
    `Endpoints  ${endpoints.length === 0 ? "none fails" : `${endpoints.length} open or gone`}`,
    ...columns(
      endpoints.map(({ state, target, failures, lastReason, probeAt, partnerId }) => [
        `  ${state}`,
        printable(target),
        `${failures} failures, ${lastReason ?? "no reason"}`,
        probeAt === null ? "until it is closed manually" : `tried again at ${probeAt}`,
        `partner ${partnerId}`,
      ]),
    ),
    `Keys       ${keysEnding.length === 0 ? "none ends" : `${keysEnding.length} end`} within ${days} days`,
    ...columns(
      keysEnding.map(({ kind, partner, expiresAt, partnerId }) => [
        `  ${kind}`,
        `ends ${expiresAt}`,
        `partner ${partnerId}`,
        printable(partner),
      ]),
    ),
  ];
}

/** A partner's own. */
function backlogLines({ trouble, pending, oldestPendingAt, parked, pull }: Backlog, view: TroubleView): string[] {
  const left = pull?.left === null || pull?.left === undefined ? "" : `, ${pull.left} follow`;
  return [
    ...(trouble === null ? [view.style.good("You receive your notifications")] : troubleLines([trouble], view)),
    "",
    `Pending  ${pending === 0 ? "nothing" : `${pending}, the oldest since ${oldestPendingAt}`}`,
    `Parked   ${parked === 0 ? "nothing" : `${parked}: paybell notifications list --state parked`}`,
    `Pulled   ${pull === null ? "never" : `at ${pull.at}${left}${pull.problem === null ? "" : `: ${pull.problem}`}`}`,
  ];
}

function signOf({ ok, detail }: DeliveryStatus["checks"][string]): string {
  if (!ok) return "✗";
  return detail.startsWith("warning: ") ? "!" : "✓";
}

function parkedText({ parked }: NonNullable<DeliveryStatus["backlog"]>): string {
  if (parked === 0) return "nothing is parked";
  return `${parked} parked: paybell notifications list --state parked`;
}

function backlogText(backlog: DeliveryStatus["backlog"]): string {
  if (backlog === null) return "not shown: /metrics does not answer us";
  if (backlog.pending === 0) return "nothing is pending";
  return `${backlog.pending} pending, the oldest for ${Math.round(backlog.oldestPendingSeconds)} s`;
}
