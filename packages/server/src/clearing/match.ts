import { currencyDecimals, isCharging } from "@paybell/contract";
import { minorOf } from "../commands/amount.ts";
import type { ReversalState } from "../commands/states.ts";
import type { NotificationId, PartnerId, TransactionId } from "../ids.ts";
import { zoneFormat } from "../time.ts";
import type { ClearingLayout, ClearingLine, LineKind } from "./read-file.ts";

/** A transaction as a line of a file may mean it: `candidates` (store/clearing) finds them by refId, otherwise by trace and tid. */
export interface ClearingCandidate {
  readonly partnerId: PartnerId;
  readonly id: TransactionId;
  readonly notificationId: NotificationId | null;
  readonly command: "SALE" | "PREAUTH" | "PREAUTH_COMPLETE" | "REFUND" | "VOID";
  readonly state: "SUCCESS" | "ERROR";
  readonly reversal: ReversalState | null;
  readonly isVoided: boolean;
  readonly isoResponseCode: string;
  readonly refId: string;
  readonly trace: string;
  readonly amount: string;
  readonly currency: string;
  /** As its IPN has it: 14 digits, or an ISO 8601 instant. Empty: a switch reported none. */
  readonly time: string;
  /** When it was completed, or reported. */
  readonly atMs: number;
}

/** A value on which the file and the ledger disagree. */
export interface ClearingDifference {
  readonly field: "kind" | "state" | "amount" | "currency" | "refId" | "trace" | "date" | "line";
  readonly here: string;
  readonly there: string;
}

export type JudgedLine =
  | { readonly kind: "unknown" }
  | { readonly kind: "matched"; readonly with: ClearingCandidate }
  | {
      readonly kind: "different";
      readonly with: ClearingCandidate;
      readonly differences: readonly ClearingDifference[];
    };

const dayMs = 86_400_000;

/** Compares a line with the transactions that it may mean, and chooses the one that differs least. */
export function judge(
  line: ClearingLine,
  candidates: readonly ClearingCandidate[],
  layout: ClearingLayout,
): JudgedLine {
  const [best] = candidates
    .map((one) => ({ one, differences: differencesOf(line, one, layout) }))
    .sort((a, b) => a.differences.length - b.differences.length || b.one.atMs - a.one.atMs);
  if (best === undefined) return { kind: "unknown" };
  const { one, differences } = best;
  if (!isPayment(line)) return { kind: "matched", with: one };
  return differences.length === 0 ? { kind: "matched", with: one } : { kind: "different", with: one, differences };
}

function differencesOf(
  line: ClearingLine,
  one: ClearingCandidate,
  { section, timeZone }: ClearingLayout,
): ClearingDifference[] {
  const kind = isPayment(line) ? line.kind : "sale";
  const minor = `${minorOf(one.amount, currencyDecimals(one.currency) ?? 0) ?? one.amount}`;
  // A switch may report it days later, and its terminal may have a wrong clock.
  const days = [...madeOn(one.time, timeZone), dayOf(one.atMs, timeZone)];
  const daysMax = Math.max(1, section.daysMax);
  const isNear = (day: string) => {
    const daysLater = (Date.parse(line.day) - Date.parse(day)) / dayMs;
    return daysLater >= -1 && daysLater <= daysMax;
  };
  const compared: readonly (ClearingDifference & { readonly isSame: boolean })[] = [
    { field: "kind", here: one.command, there: line.kind, isSame: kindOf(one) === kind },
    stateOf(line, one, section.voids === "listed"),
    { field: "amount", here: minor, there: line.minor, isSame: minor === line.minor },
    { field: "currency", here: one.currency, there: line.currency, isSame: one.currency === line.currency },
    { field: "refId", here: one.refId, there: line.refId, isSame: isEqual(one.refId, line.refId) },
    { field: "trace", here: one.trace, there: line.trace, isSame: isEqual(one.trace, line.trace) },
    { field: "date", here: days[0] ?? "", there: line.day, isSame: days.some(isNear) },
  ];
  return compared.flatMap(({ isSame, ...difference }) => (isSame ? [] : [difference]));
}

/** Another line is about a transaction, the charge that differs least: its amount and its day are its own. */
export function isPayment({ kind }: ClearingLine): boolean {
  return kind !== "fee" && kind !== "chargeback";
}

/** The day of its own time; none without one. */
function madeOn(time: string, timeZone: string): readonly string[] {
  if (time === "") return [];
  return [time.includes("T") ? dayOf(Date.parse(time), timeZone) : dashed(time)];
}

/** The kind of line that a transaction becomes. A PreAuth is in no file. */
function kindOf({ command }: ClearingCandidate): LineKind | "" {
  if (isCharging(command)) return "sale";
  if (command === "REFUND") return "refund";
  return command === "VOID" ? "void" : "";
}

function stateOf(
  { kind }: ClearingLine,
  one: ClearingCandidate,
  listsVoids: boolean,
): ClearingDifference & { readonly isSame: boolean } {
  const said = { field: "state", there: kind } as const;
  if (one.state === "ERROR") return { ...said, here: `ERROR ${one.isoResponseCode}`, isSame: false };
  if (one.reversal !== null && one.reversal !== "stands")
    return { ...said, here: `reversal ${one.reversal}`, isSame: false };
  return { ...said, here: one.isVoided ? "voided" : "SUCCESS", isSame: !one.isVoided || listsVoids };
}

/** A value that one side lacks is no difference. */
function isEqual(here: string, there: string): boolean {
  return here === "" || there === "" || here === there;
}

export function dayOf(atMs: number, timeZone: string): string {
  return dashed(zoneFormat(timeZone)(atMs));
}

/** @param digits YYYYMMDD, and more */
function dashed(digits: string): string {
  return `${digits.slice(0, 4)}-${digits.slice(4, 6)}-${digits.slice(6, 8)}`;
}
