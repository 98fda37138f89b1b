import { type Command, Option } from "commander";
import { command, ends } from "../command.ts";
import { type AccessOptions, readClientSettings, withAccessOptions } from "../connection.ts";
import type { CommandContext } from "../context.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { wholeNumber } from "../numbers.ts";
import { columns, type JsonOption, print } from "../output.ts";
import { printable } from "../printable.ts";
import { showing } from "../progress.ts";
import { type DeliveryStatus, readStatus } from "../status/status.ts";
import { type Style, styleFor } from "../style.ts";

interface StatusOptions extends AccessOptions, JsonOption {
  readonly keysWithin: number;
}

export function statusCommand(context: CommandContext): Command {
  const made = command("status", {
    summary: "show whether the service is ready, the backlog, failing endpoints, and expiring keys",
    examples: ["paybell status", "PAYBELL_URL=https://paybell.example paybell status --json"],
    exitCodes: { 0: "the service is ready", 1: "it is not" },
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
  const operator = connection.operator();
  const found = await showing(context, "reading partners", undefined, (counted) =>
    readStatus(connection.anyone(), operator, { keysWithinDays, nowMs: context.nowMs(), counted }),
  );
  print(context, options, found, linesOf(found, keysWithinDays, styleFor(context.stdout, context.env)));
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
