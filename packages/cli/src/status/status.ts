import { Option } from "@commander-js/extra-typings";
import type { Backlog, Endpoint, KeyVersion } from "@paybell/partner/client";
import { type Api, noPaybell } from "../client/api.ts";
import { calls, callsAsPartner } from "../client/connection.ts";
import { type RegisteredPartner, readPages } from "../client/lists.ts";
import type { Overview } from "../client/operator-api.ts";
import { type AnyCommand, command } from "../shell/command.ts";
import type { CommandContext } from "../shell/context.ts";
import { exitCodes, Failure, failureOf, passes } from "../shell/failure.ts";
import { jsonIn } from "../shell/files.ts";
import { wholeNumber } from "../shell/options.ts";
import { columns, printable, type Style, showing, styleFor } from "../shell/output.ts";
import { isTask, secondsSince, type TroubleStyle, troubleLines } from "./top.ts";

export function statusCommand(context: CommandContext): AnyCommand {
  const made = command("status", {
    summary: "show trouble now, whether the service is ready, the backlog, failing endpoints, and expiring keys",
    description:
      "It begins with the partners that do not receive their notifications: what is wrong, since when, how many " +
      "wait, the next try, and when parking begins; then what is parked of partners that accept others again. With an " +
      "API key and no operator token it shows that partner's own.",
    examples: ["paybell status", "PAYBELL_URL=https://paybell.example paybell status --json"],
    exitCodes: {
      0: "the service is ready; of a partner: it receives its notifications",
      1: "it is not ready, or does not receive them",
    },
  }).addOption(
    new Option("--keys-within <days>", "list keys that expire within this many days")
      .default(14)
      .argParser(wholeNumber(0, 9_999)),
  );
  return calls(context, made, async (settings, { keysWithin: keysWithinDays }) => {
    const view = { style: styleFor(context.stdout, context.env), nowMs: context.nowMs() };
    if (callsAsPartner(settings, undefined)) {
      const backlog = await settings.partner().get<Backlog>("/v1/backlog");
      const code = isReceiving(backlog) ? exitCodes.ok : exitCodes.negative;
      return { value: backlog, lines: backlogLines(backlog, view), code };
    }
    const operator = settings.operator();
    const readiness = await readReadiness(settings.anyone());
    const found = await showing(context, "reading partners", undefined, (onProgress) =>
      readStatus(readiness, operator, { keysWithinDays, nowMs: view.nowMs, onProgress }).catch(failureOf),
    );
    if (found instanceof Failure) {
      if (readiness.ready || !passes(found)) throw found;
      const lines = [...readinessLines(readiness, view.style), "", `The rest cannot be read: ${found.message}`];
      return { value: readiness, lines, code: exitCodes.negative };
    }
    return {
      value: found,
      lines: [...troubleLines(found, view), "", ...linesOf(found, keysWithinDays, view.style)],
      code: found.ready ? exitCodes.ok : exitCodes.negative,
    };
  });
}

function readinessLines({ ready, checks }: Readiness, style: Style): string[] {
  return [
    ready ? style.good("Ready") : style.bad("Not ready"),
    ...columns(Object.entries(checks).map(([name, check]) => [`  ${signOf(check)}`, name, printable(check.detail)])),
  ];
}

function linesOf(
  { backlog, endpoints, keysEnding, partners, ...readiness }: DeliveryStatus,
  days: number,
  style: Style,
): string[] {
  return [
    ...readinessLines(readiness, style),
    "",
    `Backlog    ${backlogText(backlog)}`,
    `Parked     ${backlog.parked === 0 ? "nothing is parked" : `${backlog.parked} parked: ${listParked}`}`,
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

function isReceiving({ trouble, parkedBecause }: Backlog): boolean {
  return trouble === null && (parkedBecause === null || isTask(parkedBecause));
}

/** A partner's own. */
function backlogLines(backlog: Backlog, view: TroubleStyle): string[] {
  const { trouble, pending, oldestPendingAt, parked, parkedBecause, pull } = backlog;
  const listed = <One>(one: One | null): One[] => (one === null ? [] : [one]);
  const left = pull?.left === null || pull?.left === undefined ? "" : `, ${pull.left} follow`;
  return [
    ...(isReceiving(backlog)
      ? [view.style.good("You receive your notifications")]
      : troubleLines({ trouble: listed(trouble), parked: listed(parkedBecause) }, view)),
    "",
    `Pending  ${pending === 0 ? "nothing" : `${pending}, the oldest since ${oldestPendingAt}`}`,
    `Parked   ${parked === 0 ? "nothing" : `${parked}: ${listParked}`}`,
    `Pulled   ${pull === null ? "never" : `at ${pull.at}${left}${pull.problem === null ? "" : `: ${pull.problem}`}`}`,
  ];
}

function signOf({ ok, detail }: Readiness["checks"][string]): string {
  if (!ok) return "✗";
  return detail.startsWith("warning: ") ? "!" : "✓";
}

const listParked = "paybell notifications list --state parked";

function backlogText({ pending, oldestPendingSeconds }: CountedBacklog): string {
  return pending === 0 ? "nothing is pending" : `${pending} pending, the oldest for ${oldestPendingSeconds} s`;
}

interface Readiness {
  readonly ready: boolean;
  readonly checks: Readonly<Record<string, { readonly ok: boolean; readonly detail: string }>>;
}

interface DeliveryStatus extends Readiness, Pick<Overview, "trouble" | "parked"> {
  readonly backlog: CountedBacklog;
  readonly endpoints: readonly Endpoint[];
  /** Key versions that end within the days that were asked for, the first to end first. */
  readonly keysEnding: readonly EndingKey[];
  readonly partners: { readonly total: number; readonly paused: number; readonly disabled: number };
}

interface CountedBacklog {
  readonly pending: number;
  /** Given up for now: they stay until they are redelivered. */
  readonly parked: number;
  readonly oldestPendingSeconds: number;
}

interface EndingKey extends Pick<KeyVersion, "id" | "kind"> {
  readonly partnerId: string;
  readonly partner: string;
  readonly expiresAt: string;
}

/** The operator's first overview. @throws Failure if it cannot be read */
async function readStatus(
  readiness: Readiness,
  operator: Api,
  {
    keysWithinDays,
    nowMs,
    onProgress,
  }: { keysWithinDays: number; nowMs: number; onProgress: (partners: number) => void },
): Promise<DeliveryStatus> {
  const [{ trouble, parked, pending, oldestPendingAt, standing }, open, gone] = await Promise.all([
    operator.get<Overview>("/operator/v1/overview"),
    readPages<Endpoint>(operator, "/operator/v1/endpoints", { state: "open" }),
    readPages<Endpoint>(operator, "/operator/v1/endpoints", { state: "gone" }),
  ]);
  const keysEnding: EndingKey[] = [];
  const partners = { total: 0, paused: 0, disabled: 0 };
  const untilMs = nowMs + keysWithinDays * 86_400_000;
  for (const partner of await readPages<RegisteredPartner>(operator, "/operator/v1/partners", {}, { onProgress })) {
    partners.total += 1;
    if (partner.state !== "active") partners[partner.state] += 1;
    keysEnding.push(...endingKeys(partner, nowMs, untilMs));
  }
  keysEnding.sort((a, b) => (a.expiresAt < b.expiresAt ? -1 : 1));
  const oldestPendingSeconds = secondsSince(oldestPendingAt, nowMs);
  const backlog = { pending, parked: standing.parked, oldestPendingSeconds };
  return { trouble, parked, ...readiness, backlog, endpoints: [...open, ...gone], keysEnding, partners };
}

async function readReadiness(api: Api): Promise<Readiness> {
  const { status, text } = await api.look("/readyz");
  const { ready, checks } = Object(jsonIn(text)) as Readiness;
  if (typeof ready === "boolean" && typeof checks === "object") return { ready, checks };
  throw noPaybell(api.baseUrl, status);
}

function endingKeys({ id: partnerId, settings, keys }: RegisteredPartner, nowMs: number, untilMs: number): EndingKey[] {
  return keys.flatMap(({ id, kind, expiresAt }) => {
    if (expiresAt === null) return [];
    const endsMs = Date.parse(expiresAt);
    return endsMs > nowMs && endsMs <= untilMs ? [{ id, kind, partnerId, partner: settings.name, expiresAt }] : [];
  });
}
