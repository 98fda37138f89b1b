import { isAbsolute, relative } from "node:path";
import {
  type CardIpn,
  type Cipher,
  cardIpnFields,
  responseMeaning,
  type SettlementIpn,
  settlementIpnFields,
} from "@paybell/contract";
import type { ReceivedIpn } from "@paybell/partner";
import type { ReversalEnd } from "../ledger/reversals/reverser.ts";
import type { Transaction } from "../ledger/store.ts";
import { approvedCode, unknownCode } from "../response-codes.ts";
import {
  columnsOf,
  count,
  cut,
  flow,
  flowPainted,
  label,
  milliseconds,
  type OutputStyle,
  type OutputTone,
  type Piece,
  padEnd,
  padStart,
  paint,
  printable,
  wrap,
} from "./output-text.ts";
import type { FailedDelivery, RefusedDelivery } from "./receiver.ts";

/** A delivery that the sandbox partner refused, with a hint. */
export function refusedLines({ reason, hint, path }: RefusedDelivery, style: OutputStyle): string[] {
  const heading = label(style, "badLabel", "REFUSED");
  const title = `${heading}  ${paint(style, "bad", reason)}  ${paint(style, "faint", path)}`;
  return [title, ...paragraph(hint, style), ""];
}

/** A delivery that the sandbox partner failed on purpose, at /ipn/flaky or /ipn/down. */
export function failedLines({ status, notificationId, attempt, path }: FailedDelivery, style: OutputStyle): string[] {
  const title = `${label(style, "warningLabel", "FAILED")}  ${status} on purpose  ${paint(style, "faint", path)}`;
  const facts = [
    ...(notificationId === "" ? [] : [`notification ${printable(notificationId)}`]),
    ...(attempt === "" ? [] : [`attempt ${printable(attempt)}`]),
  ];
  return [title, ...faintFlow(facts, style), ""];
}

export interface ShownAttempt {
  readonly notificationId: string;
  readonly attemptNo: number;
  readonly url: string;
  readonly httpStatus: number | null;
  /** The service's reason: timeout, connect, tls … */
  readonly reason: string;
  /** Milliseconds until the next attempt; null when it is parked. */
  readonly nextAfterMs: number | null;
}

export function failedAttemptLines(failed: ShownAttempt, style: OutputStyle): string[] {
  const what = failed.httpStatus === null ? failed.reason : `${failed.httpStatus} ${failed.reason}`;
  const [tone, word, next] =
    failed.nextAfterMs === null
      ? (["bad", "PARKED", "kept, and replayable"] as const)
      : (["warning", "FAILED", `again in ${milliseconds(failed.nextAfterMs)}`] as const);
  const title = label(style, `${tone}Label`, word);
  const facts = [
    printable(failed.url),
    `notification ${printable(failed.notificationId)}`,
    `attempt ${failed.attemptNo}`,
  ];
  return [`${title}  ${paint(style, tone, printable(what))}  ${next}`, ...faintFlow(facts, style), ""];
}

/** Shown at the first Ctrl-C. */
export function drainingLines(
  facts: { readonly inFlight: number; readonly atMostMs: number },
  style: OutputStyle,
): string[] {
  if (facts.inFlight === 0) return ["", ...paragraph("Stopping.", style)];
  const most = milliseconds(facts.atMostMs);
  return [
    "",
    ...paragraph(`${facts.inFlight} in flight, waiting at most ${most}; press Ctrl-C again to stop at once`, style),
  ];
}

/** The last line. Pending notifications are in the database. */
export function stoppedLines({ pending }: { readonly pending: number }, style: OutputStyle): string[] {
  if (pending === 0) return paragraph("Stopped. No notification is waiting.", style);
  return paragraph(`Stopped. ${count(pending, "notification")} kept for the next start.`, style);
}

function paragraph(text: string, style: OutputStyle): string[] {
  return wrap(printable(text), style.columns - indent.length).map((line) => indent + line);
}

function indentedFlow(pieces: readonly Piece[], style: OutputStyle): string[] {
  return flowPainted(pieces, " · ", style.columns - indent.length, style).map((line) => indent + line);
}

function faintFlow(facts: readonly string[], style: OutputStyle): string[] {
  return indentedFlow(
    facts.map((text) => ({ text })),
    style,
  );
}

/** A Reversal that the acquirer answered. It has no IPN: section 1 defines none for a system command. */
export function reversalLines({ id, command, facts }: Transaction, end: ReversalEnd, style: OutputStyle): string[] {
  const isDone = end.state === "DONE";
  const { amount = "", currency = "", traceNo = "", reqId = "" } = facts.fields;
  const badge = label(style, isDone ? "goodLabel" : "badLabel", isDone ? "REVERSED" : "PARKED");
  const title = [isDone ? printable(command) : `Reversal of ${printable(command)}`, printable(`${amount} ${currency}`)];
  const answer = `answered ${meaningOf(end.responseCode)}`;
  const pieces = [`transaction ${id}`, `traceNo ${traceNo}`, `reqId ${reqId}`].map((text) => ({
    text: printable(text),
  }));
  return [
    `${badge}  ${paint(style, "strong", title.join("  ").trim())}  ${paint(style, isDone ? "good" : "bad", answer)}`,
    ...paragraph(outcomeOf(end), style),
    ...indentedFlow(pieces, style),
    "",
  ];
}

function outcomeOf({ state, responseCode }: ReversalEnd): string {
  if (state === "PARKED") return "It stays locked until it is resolved with the acquirer: money may have moved.";
  if (responseCode === unknownCode) return "The acquirer never saw it: nothing is charged.";
  return "Nothing is charged: it is in no total and no list.";
}

function meaningOf(code: string): string {
  const meaning = code === approvedCode ? "Approved" : responseMeaning(code);
  return printable(meaning === "" ? code : `${code} (${meaning})`);
}

export interface BannerFacts {
  /** The service's address, such as http://localhost:7420. */
  readonly baseUrl: string;
  /** The sandbox partner's, such as https://127.0.0.1:7421/ipn. */
  readonly receiverUrl: string;
  /** sandbox.json, absolute. */
  readonly credentialsPath: string;
  /** The folder of the start: paths are shown relative to it. */
  readonly workingDirectory: string;
  /** Milliseconds that the start took. */
  readonly readyAfterMs: number;
  /** The path of the executable file: its machine may have no Node. Absent: the command runs on an installed one. */
  readonly executable?: string | undefined;
}

/** The terminal's text once the sandbox is ready. It contains no secret: the command reads the API key when it runs. */
export function bannerLines(facts: BannerFacts, style: OutputStyle): string[] {
  const credentials = pathFrom(facts.workingDirectory, facts.credentialsPath);
  const where = isAbsolute(credentials) ? "into another terminal" : "into another terminal in this folder";
  return [
    "",
    indent +
      paint(style, "strong", "Paybell sandbox") +
      paint(style, "faint", `  ready in ${milliseconds(facts.readyAfterMs)}`),
    "",
    ...placeLines(facts, credentials, style),
    "",
    ...paragraph(`To make a Sale, paste this ${where}:`, style),
    "",
    ...(facts.executable === undefined
      ? saleCommandLines(facts.baseUrl, credentials)
      : [`${quote(facts.executable)} trigger sale`]),
    "",
    ...paragraph("Its IPN appears here. Ctrl-C stops.", style),
    "",
  ];
}

const nameColumns = 13;

function placeLines({ baseUrl, receiverUrl }: BannerFacts, credentials: string, style: OutputStyle): string[] {
  const places = [
    { name: "Service", place: baseUrl, hint: "" },
    { name: "Console", place: `${baseUrl}/console`, hint: "" },
    { name: "Docs", place: `${baseUrl}/docs`, hint: "" },
    { name: "Receiver", place: receiverUrl, hint: "the sandbox partner: its IPNs go here" },
    { name: "Credentials", place: credentials, hint: "its keys, and the operator's token" },
  ];
  const hinted = places.filter(({ hint }) => hint !== "");
  const placeColumns = Math.max(...hinted.map(({ place }) => columnsOf(place))) + 2;
  return places.map(({ name, place, hint }) => {
    const line = indent + paint(style, "faint", name.padEnd(nameColumns)) + paint(style, "link", place);
    const hintFits = indent.length + nameColumns + placeColumns + hint.length <= style.columns;
    if (hint === "" || !hintFits) return line;
    return line + " ".repeat(placeColumns - columnsOf(place)) + paint(style, "faint", hint);
  });
}

/**
 * A Sale as a curl command, for any POSIX shell: a new reqId each time it is pasted, the API key read from sandbox.json
 * by node, which is certainly installed, unlike jq. Never wrapped to the terminal: a copied line break would end the
 * command.
 */
function saleCommandLines(baseUrl: string, credentials: string): string[] {
  const file = isAbsolute(credentials) ? credentials : `./${credentials}`;
  const readKey = quote(`require(${JSON.stringify(file)}).apiKey`);
  return [
    `curl -sS ${baseUrl}/v1/commands -w '\\n' \\`,
    // Equivalent to an Authorization header, and short enough for 80 columns.
    `  --oauth2-bearer "$(node -p ${readKey})" \\`,
    "  -H 'Content-Type: application/json' \\",
    `  -d '{"command": "SALE", "reqId": "'$(node -p 'crypto.randomUUID()')'",`,
    `       "amount": "150000", "currency": "VND", "merchantTransId": "order-1",`,
    `       "tid": "T0000001", "mid": "M00000001",`,
    `       "card": {"token": "tok_approve", "number": "411111******1111",`,
    `                "swipeType": "C", "aid": "A0000000031010"}}'`,
  ];
}

/** Relative to the shell's folder; absolute if it is elsewhere. */
function pathFrom(folder: string, path: string): string {
  const shorter = relative(folder, path);
  return shorter.startsWith("..") || isAbsolute(shorter) ? path : shorter;
}

/** Quotes one word for a POSIX shell, whatever it contains. */
function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/** An IPN that the sandbox partner accepted. */
export interface ShownIpn {
  readonly received: ReceivedIpn;
  readonly cipher: Cipher;
  /** Milliseconds from the command's arrival, if known. */
  readonly afterCommandMs?: number;
}

/** Rows of settlementList that are shown; a batch may have 50,000. */
const listRowsMax = 5;

/** An IPN in the terminal: its result, its protection, then every field. */
export function ipnLines(shown: ShownIpn, style: OutputStyle): string[] {
  const { received } = shown;
  const { kind, ipn } = received;
  return [
    ...titleLines(received, style),
    ...(kind === "settlement" ? totalLines(ipn, style) : []),
    ...protectionLines(shown, style),
    "",
    ...fieldLines(scalars(received), style),
    ...(kind === "settlement" ? listLines(ipn, style) : []),
    "",
  ];
}

function titleLines({ kind, ipn, command, headers }: ReceivedIpn, style: OutputStyle): string[] {
  const isGood = ipn.status === "SUCCESS";
  const tone: OutputTone = isGood ? "good" : "bad";
  const badge = label(style, isGood ? "goodLabel" : "badLabel", "IPN");
  const facts = [
    { text: printable(command ?? headers.command ?? ipn.transaction_type), tone: "strong" as const },
    { text: kind === "card" ? result(ipn) : printable(ipn.status), tone },
    ...(kind === "card" ? cardFacts(ipn).map((text) => ({ text, tone: "strong" as const })) : []),
  ];
  // The label has the same width with colours as in brackets.
  const [first = "", ...rest] = flowPainted(facts, "  ", style.columns - "[IPN]  ".length, style);
  return [`${badge}  ${first}`, ...rest.map((line) => " ".repeat("[IPN]  ".length) + line)];
}

function result({ status, isoResponseCode }: CardIpn): string {
  return `${printable(status)} ${meaningOf(isoResponseCode)}`;
}

function cardFacts({ amount, currency, cardScheme, cardNumber }: CardIpn): string[] {
  return [`${amount} ${currency}`, `${cardScheme} ${cardNumber}`].map((fact) => printable(fact.trim())).filter(Boolean);
}

function protectionLines({ received, cipher, afterCommandMs }: ShownIpn, style: OutputStyle): string[] {
  const { notificationId, attempt, outOfOrder } = received;
  const facts = [
    { text: "signature ✓", tone: "good" as const },
    { text: `sealed ${cipher}` },
    ...(attempt === undefined ? [] : [{ text: `attempt ${attempt}` }]),
    ...(afterCommandMs === undefined ? [] : [{ text: `${milliseconds(afterCommandMs)} after the command` }]),
    ...(outOfOrder ? [{ text: "out of order", tone: "warning" as const }] : []),
    ...(notificationId === undefined ? [] : [{ text: `notification ${printable(notificationId)}` }]),
  ];
  return indentedFlow(facts, style);
}

function totalLines(ipn: SettlementIpn, style: OutputStyle): string[] {
  const rows = [
    ["sales", ipn.saleQuantity, ipn.saleTotalAmount],
    ["voids", ipn.voidQuantity, ipn.voidTotalAmount],
    ["batch", ipn.quantity, ipn.totalAmount],
  ].map((row) => row.map(printable));
  const widest = (column: number) => Math.max(...rows.map((row) => row[column]?.length ?? 0));
  const [counts, amounts] = [widest(1), widest(2)];
  return rows.map(([name = "", quantity = "", total = ""]) => {
    const line = cut(
      `${name}  ${padStart(quantity, counts)}  ${padStart(total, amounts)}`,
      style.columns - indent.length,
    );
    return indent + (name === "batch" ? paint(style, "strong", line) : line);
  });
}

function listLines({ settlementList }: SettlementIpn, style: OutputStyle): string[] {
  const heading = `settlementList: ${count(settlementList.length, "transaction")}`;
  const shown = settlementList.slice(0, listRowsMax);
  const refNos = shown.map(({ refNo }) => printable(refNo));
  const refNoColumns = Math.max(5, ...refNos.map((refNo) => refNo.length));
  const rows = shown.map(({ reqId }, at) => `${padEnd(refNos[at] ?? "", refNoColumns)}  ${printable(reqId)}`);
  const more = settlementList.length - shown.length;
  const table = [
    ...(rows.length === 0 ? [] : [paint(style, "faint", `${padEnd("refNo", refNoColumns)}  reqId`)]),
    ...rows.map((row) => cut(row, style.columns - 2 * indent.length)),
    ...(more === 0 ? [] : [paint(style, "faint", `and ${count(more, "more", "more")}`)]),
  ];
  return ["", indent + paint(style, "faint", heading), ...table.map((row) => indent + indent + row)];
}

function scalars({ kind, ipn }: ReceivedIpn): [name: string, value: string][] {
  const fields = kind === "card" ? cardIpnFields : settlementIpnFields;
  const values: Readonly<Record<string, unknown>> = ipn;
  return fields.flatMap(({ name }): [string, string][] => {
    const value = values[name];
    return typeof value === "string" ? [[name, value]] : [];
  });
}

const indent = "  ";
const gap = 2;
/** In a narrower terminal so few values are short that two columns only disturb the order. */
const twoColumnsFrom = 72;

/**
 * The fields of an IPN: long values on lines of their own, then the short ones in two columns, read downwards, then the
 * names of the empty ones.
 */
function fieldLines(fields: readonly (readonly [name: string, value: string])[], style: OutputStyle): string[] {
  const columns = style.columns - indent.length;
  const filled = fields.filter(([, value]) => value !== "").map(([name, value]) => [name, printable(value)] as const);
  const empty = fields.filter(([, value]) => value === "").map(([name]) => name);
  const nameColumns = Math.max(0, ...filled.map(([name]) => name.length)) + gap;
  const cellColumns = Math.floor((columns - gap) / 2);
  const isShort = (value: string) => style.columns >= twoColumnsFrom && nameColumns + columnsOf(value) <= cellColumns;

  const cell = (name: string, value: string, width: number) => {
    const shown = padEnd(cut(value, width - nameColumns), width - nameColumns);
    return paint(style, "faint", padEnd(name, nameColumns)) + shown;
  };
  const long = filled
    .filter(([, value]) => !isShort(value))
    .map(([name, value]) => cell(name, value, columns).trimEnd());
  const short = filled.filter(([, value]) => isShort(value));
  const rows = Math.ceil(short.length / 2);
  const grid = Array.from({ length: rows }, (_, row) => {
    const [left, right] = [short[row], short[row + rows]];
    const cells = [left, right].flatMap((field) => (field === undefined ? [] : [cell(...field, cellColumns)]));
    return cells.join(" ".repeat(gap)).trimEnd();
  });
  return [...long, ...grid, ...emptyLines(empty, columns, style)].map((line) => indent + line);
}

function emptyLines(names: readonly string[], columns: number, style: OutputStyle): string[] {
  if (names.length === 0) return [];
  const listed = names.map((name, at) => (at === names.length - 1 ? name : `${name},`));
  const lines = flow(listed, " ", columns - "empty  ".length);
  return lines.map((line, at) => paint(style, "faint", (at === 0 ? "empty  " : "       ") + line));
}
