import { NotAuthentic, type NotAuthenticReason } from "../errors.ts";
import {
  type CardIpn,
  type Column,
  extensionColumns,
  type FieldSet,
  type IpnKind,
  ipnColumns,
  type SettlementIpn,
  settlementListColumns,
} from "../fields/columns.ts";
import { parseStrictly } from "../json/strict-json.ts";

type Values = Readonly<Record<string, unknown>>;

export interface WireIpn {
  readonly kind: IpnKind;
  /** The object exactly as received, unknown keys included. */
  readonly wire: Readonly<Record<string, unknown>>;
  /** The tables' names only, missing fields as empty strings. It is `wire` itself if that has exactly these. */
  readonly ipn: CardIpn | SettlementIpn;
}

/**
 * Reads an opened IPN under either set of names. It does not verify the signature.
 *
 * @throws NotAuthentic if it is not a JSON object, a key occurs twice, a field occurs under two of its names, or a
 * scalar is not a string.
 */
export function fromWire(json: string, fields: FieldSet = "specification"): WireIpn {
  const read = readWire(json, fields);
  if (typeof read === "string") throw new NotAuthentic(read);
  return read;
}

/** As fromWire, but returns the reason instead of throwing. */
export function readWire(json: string, fields: FieldSet): WireIpn | NotAuthenticReason {
  const parsed = parseStrictly(json);
  if ("refused" in parsed) return parsed.refused;
  if (!isObject(parsed.value)) return "not_json";
  const wire = parsed.value;
  const kind = kindOf(wire);
  const ipn = byTableNames(wire, ipnColumns(kind, fields));
  if (typeof ipn === "string") return ipn;
  return { kind, wire, ipn: (kind === "card" ? withSchemeInCapitals(ipn) : ipn) as CardIpn | SettlementIpn };
}

/** Whether it has every field that an extended IPN adds. Alone this proves nothing: the signature must cover them. */
export function hasExtension(kind: IpnKind, wire: Values): boolean {
  return extensionColumns[kind].every(({ name }) => typeof wire[name] === "string");
}

/**
 * The type does not decide: a card IPN may have the type SETTLE (section 6), and a settlement SALE or VOID (section
 * 2.3, field 16). Only a settlement has a saleQuantity. Both tables have a settlementList.
 */
function kindOf(wire: Values): IpnKind {
  const settles = wire["transaction_type"] === "SETTLE" && "settlementList" in wire;
  return settles || "saleQuantity" in wire ? "settlement" : "card";
}

function withSchemeInCapitals(ipn: Values): Values {
  const scheme = ipn["cardScheme"] as string;
  const capitals = scheme.toUpperCase();
  return scheme === capitals ? ipn : { ...ipn, cardScheme: capitals };
}

function byTableNames(wire: Values, columns: readonly Column[]): Values | "two_names" | "wrong_type" {
  // The usual case needs no copy and no look-up of each field.
  if (isAsInTable(wire, columns)) return wire;
  if (!everyScalarIsText(wire)) return "wrong_type";
  const ipn = renamed(wire, columns);
  if (typeof ipn === "string") return ipn;
  for (const { name, type } of columns) {
    if (type === "string") {
      if (typeof ipn[name] !== "string") return "wrong_type";
    } else {
      const list = readList(ipn[name]);
      if (typeof list === "string") return list;
      ipn[name] = list;
    }
  }
  return ipn;
}

/** Whether it has the table's names in its order, and string values only. */
function isAsInTable(wire: Values, columns: readonly Column[]): boolean {
  const keys = Object.keys(wire);
  const values = Object.values(wire);
  return (
    keys.length === columns.length &&
    columns.every(({ name, type }, at) => keys[at] === name && type === "string" && typeof values[at] === "string")
  );
}

function renamed(wire: Values, columns: readonly Column[]): Record<string, unknown> | "two_names" {
  const ipn: Record<string, unknown> = {};
  for (const { name, alias, type } of columns) {
    const second = alias === undefined ? undefined : wire[alias];
    const first = wire[name];
    if (first !== undefined && second !== undefined) return "two_names";
    ipn[name] = first ?? second ?? (type === "list" ? [] : "");
  }
  return ipn;
}

function readList(value: unknown): Values[] | "two_names" | "wrong_type" {
  if (!Array.isArray(value)) return "wrong_type";
  const list: Values[] = [];
  for (const item of value) {
    const entry = isObject(item) ? byTableNames(item, settlementListColumns) : "wrong_type";
    if (typeof entry === "string") return entry;
    list.push(entry);
  }
  return list;
}

function isObject(value: unknown): value is Values {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Section 2: all scalars are JSON strings. This applies to unknown keys as well. */
function everyScalarIsText(value: unknown): boolean {
  if (typeof value === "string") return true;
  if (typeof value !== "object" || value === null) return false;
  return Object.values(value).every(everyScalarIsText);
}
