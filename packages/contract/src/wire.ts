import { type IpnKind, ipnColumns, type SettlementEntry } from "./columns.ts";

/** The keys of the IPN: those of the tables of section 2, or those of the sample bodies. */
export type WireNames = "table" | "sample";
export const wireNames = ["table", "sample"] as const satisfies readonly WireNames[];

/** Keys of the specification's sample settlement body that its table does not describe (section 2.3, notes). */
const sampleOnlySettlementNames = ["request_body", "response"] as const;

type Values = Readonly<Record<string, unknown>>;

/**
 * Returns the IPN as it is sent: every field of its table, in the table's order, unknown ones as empty strings. It has
 * a signature only if one is given, so that an unsigned IPN cannot look signed. The sample's settlement body also has
 * request_body and response, both empty.
 *
 * @throws TypeError if a value is neither a string (for settlementList: a list) nor absent.
 */
export function toWire(kind: IpnKind, ipn: Values, names: WireNames): Record<string, unknown> {
  const wire: Record<string, unknown> = {};
  for (const column of ipnColumns(kind)) {
    if (column.name === "signature") continue;
    const name = names === "sample" ? (column.alias ?? column.name) : column.name;
    wire[name] = column.type === "list" ? toWireList(ipn[column.name]) : text(column.name, ipn[column.name]);
  }
  if (names === "sample" && kind === "settlement") for (const name of sampleOnlySettlementNames) wire[name] = "";
  if (ipn["signature"] !== undefined) wire["signature"] = text("signature", ipn["signature"]);
  return wire;
}

function toWireList(value: unknown): SettlementEntry[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new TypeError("settlementList must be a list");
  return value.map((entry: Values) => ({ reqId: text("reqId", entry["reqId"]), refNo: text("refNo", entry["refNo"]) }));
}

function text(name: string, value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") throw new TypeError(`${name} must be a string`);
  return value;
}
