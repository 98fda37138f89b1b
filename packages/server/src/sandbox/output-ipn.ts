import {
  type CardIpn,
  type Cipher,
  cardIpnFields,
  responseMeaning,
  type SettlementIpn,
  settlementIpnFields,
} from "@paybell/contract";
import type { ReceivedIpn } from "@paybell/partner";
import { approvedCode } from "../response-codes.ts";
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
  padEnd,
  padStart,
  paint,
  printable,
} from "./output-text.ts";

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

function result({ status, isoResponseCode: code }: CardIpn): string {
  const meaning = code === approvedCode ? "Approved" : responseMeaning(code);
  return printable(`${status} ${code}${meaning === "" ? "" : ` (${meaning})`}`);
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
  return flowPainted(facts, " · ", style.columns - indent.length, style).map((line) => indent + line);
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

export const indent = "  ";
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
