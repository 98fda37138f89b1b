import { type FieldSet, type IpnKind, ipnColumns, type SettlementEntry } from "./columns.ts";

/** The keys of the IPN: those of the tables of section 2, or those of the sample bodies. */
export type WireNames = "table" | "sample";
export const wireNames = ["table", "sample"] as const satisfies readonly WireNames[];

/** Keys of the specification's sample settlement body that its table does not describe (section 2.3, notes). */
const sampleOnlySettlementNames = ["request_body", "response"] as const;

type Values = Readonly<Record<string, unknown>>;

/** An IPN as it is sent, without its signature. */
interface WireForm {
  /** Every key, in its order, with an empty value. A copy is made faster than by adding the keys one by one. */
  readonly blank: Values;
  readonly fields: readonly { readonly name: string; readonly sentAs: string; readonly isList: boolean }[];
}

function formOf(kind: IpnKind, names: WireNames, fieldSet: FieldSet): WireForm {
  const fields = ipnColumns(kind, fieldSet)
    .filter(({ name }) => name !== "signature")
    .map(({ name, alias, type }) => ({
      name,
      sentAs: names === "sample" ? (alias ?? name) : name,
      isList: type === "list",
    }));
  const isSampleSettlement = names === "sample" && kind === "settlement";
  const keys = [...fields.map(({ sentAs }) => sentAs), ...(isSampleSettlement ? sampleOnlySettlementNames : [])];
  return { blank: Object.fromEntries(keys.map((key) => [key, ""])), fields };
}

const forms = {
  specification: formsOf("specification"),
  extended: formsOf("extended"),
} satisfies Record<FieldSet, Record<WireNames, Record<IpnKind, WireForm>>>;

function formsOf(fields: FieldSet): Record<WireNames, Record<IpnKind, WireForm>> {
  return {
    table: { card: formOf("card", "table", fields), settlement: formOf("settlement", "table", fields) },
    sample: { card: formOf("card", "sample", fields), settlement: formOf("settlement", "sample", fields) },
  };
}

/**
 * Returns the IPN as it is sent: every field of its table, in the table's order, unknown ones as empty strings. It has
 * a signature only if one is given, so that an unsigned IPN cannot look signed. The sample's settlement body also has
 * request_body and response, both empty. An extended IPN has its fields after those of the table.
 *
 * @throws TypeError if a value is neither a string (for settlementList: a list) nor absent.
 */
export function toWire(
  kind: IpnKind,
  ipn: Values,
  names: WireNames,
  fieldSet: FieldSet = "specification",
): Record<string, unknown> {
  const { blank, fields } = forms[fieldSet][names][kind];
  const wire: Record<string, unknown> = { ...blank };
  for (const { name, sentAs, isList } of fields) {
    const value = ipn[name];
    wire[sentAs] = isList ? toWireList(value) : text(name, value);
  }
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
