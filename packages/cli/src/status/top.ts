import { setTimeout as sleep } from "node:timers/promises";
import { Option } from "@commander-js/extra-typings";
import type { Figures, ParkedOfPartner, Trouble } from "@paybell/partner/client";
import { calls } from "../client/connection.ts";
import type { Overview } from "../client/operator-api.ts";
import { type AnyCommand, command } from "../shell/command.ts";
import type { CommandContext } from "../shell/context.ts";
import { exitCodes, Failure, failureText, passes } from "../shell/failure.ts";
import { wholeNumber } from "../shell/options.ts";
import { columns, printable, type Style, styleFor } from "../shell/output.ts";

/** Moves to the upper left corner, and clears what is below. */
const redraw = "\u001b[H\u001b[J";

export function topCommand(context: CommandContext): AnyCommand {
  const made = command("top", {
    summary: "watch deliveries: partners in trouble now, rates, latencies and backlog",
    description:
      "On a terminal it is drawn again every few seconds until Ctrl-C. With --once, with --json, or where the output " +
      "is not a terminal, it is printed once.",
    examples: ["paybell top", "paybell top --once"],
    exitCodes: { 0: "printed once, or stopped by Ctrl-C" },
  })
    .addOption(new Option("--interval <seconds>", "how often it is drawn").default(2).argParser(wholeNumber(1, 9_999)))
    .option("--once", "print it once");
  return calls(
    context,
    made,
    async (settings, options) => {
      const api = settings.operator();
      const { stdout, signal } = context;
      const style = styleFor(stdout, context.env);
      const draw = async () => {
        const value = await api.get<Overview>("/operator/v1/overview", { span: "hour" }, { signal });
        return { value, lines: overviewLines(value, { style, width: stdout.columns ?? 80, nowMs: context.nowMs() }) };
      };
      if (options.once === true || options.json === true || stdout.isTTY !== true) return draw();
      for (let isDrawn = false; ; ) {
        try {
          const { lines } = await draw();
          stdout.write(`${redraw}${lines.join("\n")}\n`);
          isDrawn = true;
        } catch (error) {
          // A restart of the service is not the end, and Ctrl-C is.
          const isPassing = isDrawn && error instanceof Failure && passes(error);
          if (!signal.aborted && !isPassing) throw error;
          if (!signal.aborted) context.stderr.write(`${failureText(error as Failure)}\n`);
        }
        await sleep(options.interval * 1_000, undefined, { signal }).catch(() => undefined);
        if (signal.aborted) return exitCodes.ok;
      }
    },
    "finishes",
  );
}

export interface TroubleStyle {
  readonly style: Style;
  readonly nowMs: number;
}

interface View extends TroubleStyle {
  /** The width of the terminal in columns. */
  readonly width: number;
}

/** 0 for no time. The service's clock may be ahead of ours. */
export function secondsSince(time: string | null, nowMs: number): number {
  return time === null ? 0 : Math.max(0, Math.round((nowMs - Date.parse(time)) / 1_000));
}

const bars = "▁▂▃▄▅▆▇█";
const labelWidth = 12;

function overviewLines(overview: Overview, view: View): string[] {
  const { figures, pending, oldestPendingAt, standing, trouble, parked } = overview;
  const { style, width, nowMs } = view;
  const oldestS = secondsSince(oldestPendingAt, nowMs);
  const alarming = (count: number, text: string) => (count === 0 ? style.faint(text) : style.bad(text));
  return [
    ...troubleLines({ trouble, parked }, view),
    "",
    style.strong(`Deliveries of the last hour, as of ${figures.asOf}`),
    "",
    line("Accepted", `${figures.accepted}`),
    line("Failed", alarming(figures.failed, `${figures.failed} attempts`)),
    line("Parked", alarming(figures.parked, `${figures.parked}, ${standing.parked} in all`)),
    ...courseLines(figures, width),
    "",
    line("Pending", pending === 0 ? "nothing" : `${pending}, the oldest for ${oldestS} s`),
    line("Circuits", alarming(standing.tripped, `${standing.tripped} open or gone`)),
    line(
      "Money",
      alarming(
        standing.reversalsParked,
        `${standing.reversalsParked} Reversals parked, ${standing.reversalsPending} pending, ` +
          `${standing.settlementsWaiting} settlements waiting`,
      ),
    ),
  ];
}

/** The partners that do not receive their notifications now, and why; then those with parked ones that do. */
export function troubleLines(
  { trouble, parked }: Pick<Overview, "trouble" | "parked">,
  { style, nowMs }: TroubleStyle,
): string[] {
  const tasks = parked.filter(isTask);
  const cells = [
    ...trouble.map((one) => troubleCells(one, nowMs)),
    ...parked.filter((one) => !isTask(one)).map(parkedCells),
  ];
  return [
    ...(cells.length === 0 ? [style.good("No partner is in trouble")] : [style.bad("Trouble now"), ...columns(cells)]),
    ...(tasks.length === 0 ? [] : ["Waits for a person", ...columns(tasks.map(parkedCells))]),
  ];
}

/** A partner that accepts others again is no longer in trouble: what is parked waits for a person. */
export function isTask({ acceptedAt }: ParkedOfPartner): boolean {
  return acceptedAt !== null;
}

function parkedCells(of: ParkedOfPartner): string[] {
  const { partnerId, partnerName, parked, reason, httpStatus, since, acceptedAt } = of;
  return [
    `  ${printable(partnerName)}`,
    httpStatus === null ? (reason ?? "unknown") : `answered ${httpStatus}`,
    since === null ? "" : `since ${since}`,
    `${countText(parked)} parked`,
    "sent again when a person acts",
    acceptedAt === null ? "" : `others accepted, last at ${acceptedAt}`,
    partnerId,
  ];
}

function countText(count: number): string {
  return `${count}${count === 1_000 ? " or more" : ""}`;
}

function troubleCells(trouble: Trouble, nowMs: number): string[] {
  const { partnerId, partnerName, since, waiting, nextAttemptAt, parkingAt } = trouble;
  const at = (time: string) => (Date.parse(time) <= nowMs ? "now" : `at ${time}`);
  return [
    `  ${printable(partnerName)}`,
    problemOf(trouble),
    since === null ? "" : `since ${since}`,
    `${countText(waiting)} wait`,
    nextAttemptAt === null ? "tried again when a person acts" : `next try ${at(nextAttemptAt)}`,
    parkingAt === null ? "not parked meanwhile" : `parked ${at(parkingAt)}`,
    partnerId,
  ];
}

function problemOf({ because, reason, httpStatus }: Trouble): string {
  if (because === "paused" || because === "disabled") return because;
  const last = httpStatus === null ? (reason ?? "not tried yet") : `answered ${httpStatus}`;
  return because === "circuit" ? `${last}, circuit open` : last;
}

/** One partner's figures. */
export function figuresLines(figures: Figures, width: number): string[] {
  return [
    line("Accepted", `${figures.accepted}`),
    line("Failed", `${figures.failed} attempts`),
    line("Parked", `${figures.parked}`),
    ...courseLines(figures, width),
  ];
}

function courseLines(figures: Figures, width: number): string[] {
  return [
    line("Over time", sparkline(figures.points, width - labelWidth)),
    line("Attempt", `p50 ${ms(figures.attemptP50Ms)}, p99 ${ms(figures.attemptP99Ms)}`),
    line("Delivery", `p50 ${ms(figures.deliveryP50Ms)}, p99 ${ms(figures.deliveryP99Ms)}`),
  ];
}

function line(label: string, text: string): string {
  return `${label.padEnd(labelWidth)}${text}`;
}

/** One bar for each point, the newest last; the highest is the one with the most outcomes. */
function sparkline(points: Figures["points"], width: number): string {
  const counts = points.slice(-Math.max(1, width)).map(({ accepted, failed, parked }) => accepted + failed + parked);
  const most = Math.max(1, ...counts);
  return counts.map((count) => bars[Math.ceil((count / most) * (bars.length - 1))] ?? "").join("");
}

function ms(value: number | null): string {
  return value === null ? "–" : `${Math.round(value)} ms`;
}
