import type { NotifiedCommand } from "@paybell/contract";
import { badFields, ServiceError } from "../errors.ts";
import { csvCell } from "../guards/safe-text.ts";
import type { NotificationId, PartnerId, TransactionId } from "../ids.ts";
import type { NotificationState } from "../notification.ts";
import { isoTime } from "./view.ts";

/** One notification of a day of history, with its attempts. Card data are masked, as they are stored. */
export interface HistoryRow {
  readonly partnerId: PartnerId;
  readonly id: NotificationId;
  readonly transactionId: TransactionId | null;
  readonly command: NotifiedCommand;
  readonly callBackUrl: string | null;
  readonly createdAtMs: number;
  readonly state: NotificationState;
  /** The facts as JSON text. */
  readonly content: string;
  /** In order. */
  readonly attempts: readonly HistoryAttempt[];
}

export interface HistoryAttempt {
  readonly round: number;
  readonly attemptNo: number;
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly url: string;
  readonly address: string | null;
  readonly httpStatus: number | null;
  readonly reason: string | null;
  readonly keyId: string | null;
}

export interface HistorySpan {
  readonly fromMs: number;
  /** Exclusive. */
  readonly beforeMs: number;
  readonly partnerId?: PartnerId | undefined;
}

export interface HistoryStore {
  /** History is complete since then: earlier days were dropped. */
  keptFromMs(): Promise<number>;
  /** Whether a reported Void that waits for its original will have its notification in the span. */
  isWaitedFor(span: HistorySpan): Promise<boolean>;
  /** In the order of partners, then of ids. */
  pages(span: HistorySpan): AsyncIterable<readonly HistoryRow[]>;
}

const dayMs = 86_400_000;
/** A notification is stored in a transaction that began shortly before it is visible. */
const commitDelayMs = 60_000;

/**
 * Reads a day of history, of all partners or of one.
 *
 * @param day in UTC, such as 2026-11-21
 * @throws ServiceError `invalid_value` for a day that is not over, `not_found` for one that was dropped, or is meanwhile
 */
export async function readDay(
  store: HistoryStore,
  day: string,
  nowMs: number,
  partnerId?: PartnerId,
): Promise<AsyncIterable<readonly HistoryRow[]>> {
  const fromMs = Date.parse(`${day}T00:00:00Z`);
  const beforeMs = fromMs + dayMs;
  if (beforeMs + commitDelayMs > nowMs) {
    const message = `day ${day} is not over: a day ends at 00:00 UTC, and is complete from 00:01 on`;
    throw badFields([{ field: "day", code: "invalid_value", message }]);
  }
  const span = { fromMs, beforeMs, partnerId };
  if (await store.isWaitedFor(span)) {
    const message = `day ${day} is not complete: a Void that was reported on it waits for its original, for 10 minutes`;
    throw badFields([{ field: "day", code: "invalid_value", message }]);
  }
  const requireKept = async () => {
    if (beforeMs > (await store.keptFromMs())) return;
    throw new ServiceError("not_found", `The history of ${day} was dropped.`);
  };
  async function* pages() {
    yield* store.pages(span);
    // It ends with an error then, not as if there were no more.
    await requireKept();
  }
  await requireKept();
  return pages();
}

export const historyFormats = ["json-lines", "csv"] as const;
export type HistoryFormat = (typeof historyFormats)[number];

/** Writes pages of history as text, a line for each notification. */
export async function* historyText(
  pages: AsyncIterable<readonly HistoryRow[]>,
  format: HistoryFormat,
): AsyncGenerator<string> {
  if (format === "csv") yield `${csvColumns.map(([name]) => name).join(",")}\r\n`;
  const lineOf = format === "csv" ? csvLine : jsonLine;
  for await (const rows of pages) yield rows.map(lineOf).join("");
}

/** One JSON object. `content` is the IPN's facts: each field by its name in the specification. */
function jsonLine({ createdAtMs, content, attempts, ...row }: HistoryRow): string {
  const head = JSON.stringify({
    ...row,
    createdAt: isoTime(createdAtMs),
    attempts: attempts.map(({ startedAtMs, ...attempt }) => ({ startedAt: isoTime(startedAtMs), ...attempt })),
  });
  // As it was written: reading and writing it again could change a number's digits.
  return `${head.slice(0, -1)},"content":${content.trim().replaceAll("\n", " ")}}\n`;
}

type Column = readonly [name: string, value: (row: HistoryRow, fields: Fields) => string | number | null | undefined];
type Fields = Readonly<Record<string, string | undefined>>;

const factNames = [
  "merchantTransId",
  "amount",
  "currency",
  "status",
  "isoResponseCode",
  "tid",
  "mid",
  "refId",
  "reqId",
] as const;

const csvColumns: readonly Column[] = [
  ["id", ({ id }) => id],
  ["partnerId", ({ partnerId }) => partnerId],
  ["transactionId", ({ transactionId }) => transactionId],
  ["command", ({ command }) => command],
  ["createdAt", ({ createdAtMs }) => isoTime(createdAtMs)],
  ["state", ({ state }) => state],
  ["attempts", ({ attempts }) => attempts.length],
  ["lastAttemptAt", ({ attempts }) => lastTime(attempts.at(-1))],
  ["url", ({ attempts }) => attempts.at(-1)?.url],
  ["httpStatus", ({ attempts }) => attempts.at(-1)?.httpStatus],
  ["reason", ({ attempts }) => attempts.at(-1)?.reason],
  ...factNames.map((name): Column => [name, (_, fields) => fields[name]]),
];

function lastTime(attempt: HistoryAttempt | undefined): string | undefined {
  return attempt && isoTime(attempt.startedAtMs);
}

/** RFC 4180. */
function csvLine(row: HistoryRow): string {
  const { fields = {} } = JSON.parse(row.content) as { fields?: Fields };
  return `${csvColumns.map(([, value]) => csvCell(value(row, fields))).join(",")}\r\n`;
}
