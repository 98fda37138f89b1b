import {
  aids,
  cardIpnFields,
  currencies,
  extensionFields,
  type Field,
  type FieldFormat,
  headerNames,
  responseCodes,
  settlementIpnFields,
  settlementListFields,
  swipeTypes,
  type TransactionType,
  toWire,
  transactionTypes,
} from "@paybell/contract";
import { partnerSettings } from "../../packages/server/src/partners/settings/settings.ts";
import { code, type GeneratedFile, table, withParts } from "./document.ts";

const formats: Readonly<Record<FieldFormat, string>> = {
  uuid: "UUID v4",
  yyyymmddhhmmss: "yyyymmddhhmmss",
  "yyyymmddhhmmss-or-iso8601": "yyyymmddhhmmss, or yyyy-mm-ddThh:mm:ssZ",
  amount: "decimal, in the currency's major unit",
  count: "whole number",
};

function values({ type, values, format }: Field): string {
  if (type === "list") return "list of objects";
  if (values !== undefined) return values.map(code).join(", ");
  return format === undefined ? "" : formats[format];
}

/** The fields of a list's entries follow it. */
function fieldTable(fields: readonly Field[], entries: readonly Field[] = []): string {
  return table(
    ["No", "Field", "Also accepted as", "Values", "Meaning"],
    fields.flatMap((field) => [
      fieldRow(field, String(field.no)),
      ...(field.type === "list" ? entries.map((entry) => fieldRow(entry, `${field.no}.${entry.no}`)) : []),
    ]),
  );
}

function fieldRow(field: Field, no: string): string[] {
  const alias = field.alias === undefined ? "" : code(field.alias);
  return [no, code(field.name), alias, values(field), field.meaning];
}

/** Every field of both IPNs. */
export function fieldsReference(): GeneratedFile {
  const described = new Set<string>(
    settlementIpnFields.flatMap((field) => ["alias" in field ? field.alias : field.name]),
  );
  const undescribed = Object.keys(toWire("settlement", {}, "sample")).filter((name) => !described.has(name));
  return withParts("docs/reference/fields.md", {
    card: fieldTable(cardIpnFields),
    settlement: `${fieldTable(settlementIpnFields, settlementListFields)}\n\nWith \`wireNames: "sample"\` the body also has ${undescribed.map(code).join(" and ")}, as empty strings.`,
    extended: fieldTable([...extensionFields("card"), ...extensionFields("settlement")]),
  });
}

/** What each header of an IPN's POST means. */
export const headerMeanings: Readonly<Record<keyof typeof headerNames, string>> = {
  id: "The notification's id, the same at every attempt",
  timestamp: "When this attempt was signed, in seconds since 1970",
  signature:
    "Standard Webhooks v1 over the body as sent; during a rotation of the secret an entry for the old and one for the new, separated by a " +
    "space",
  attempt: "The number of this attempt, from 1",
  contract: "The version of the notification contract",
  key: "The public id of the encryption key's version; absent with `jwe`, which names it as `kid`",
  command: "The precise command that completed",
  originalTransaction: "The id of the transaction that this one voids, completes or refunds",
  outOfOrder: "1 if this IPN was sent before an earlier one that it should have followed; absent otherwise",
};

function commandsOf(type: TransactionType): string {
  const names = Object.entries(partnerSettings.transactionTypes.initial ?? {}).filter(([, one]) => one === type);
  return names.map(([name]) => (name === "VOID_PREAUTH" ? "`VOID` of a `PREAUTH`" : code(name))).join(", ");
}

/** Every code that an IPN or a command can carry. */
export function codesReference(): GeneratedFile {
  const currencyRows = [...new Set(currencies.values())].sort().map((decimals) => {
    const codes = [...currencies].filter(([, digits]) => digits === decimals).map(([name]) => name);
    return [String(decimals), codes.sort().join(" ")];
  });
  return withParts("docs/reference/codes.md", {
    transaction_type: table(
      ["Code", "Commands, by default"],
      transactionTypes.map((type) => [code(type), commandsOf(type)]),
    ),
    swipeType: table(
      ["Code", "Meaning"],
      swipeTypes.map((swipe) => [code(swipe.code), swipe.meaning]),
    ),
    cardScheme: table(
      ["AID", "cardScheme", "Kind"],
      aids.map(({ aid, scheme, kind }) => [code(aid), code(scheme), kind]),
    ),
    isoResponseCode: sideBySide(
      3,
      ["Code", "Meaning"],
      responseCodes.map((response) => [code(response.code), response.meaning]),
    ),
    currency: table(["Decimals", "Currencies"], currencyRows),
  });
}

/** A long table of short rows, side by side. */
function sideBySide(times: number, columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const height = Math.ceil(rows.length / times);
  const none = columns.map(() => "");
  const offsets = Array.from({ length: times }, (_, at) => at * height);
  return table(
    offsets.flatMap(() => columns),
    rows.slice(0, height).map((_, at) => offsets.flatMap((offset) => rows[offset + at] ?? none)),
  );
}

export function headersReference(): GeneratedFile {
  return withParts("docs/partner/headers.md", {
    headers: table(
      ["Header", "Meaning"],
      Object.entries(headerNames).map(([key, name]) => [code(name), headerMeanings[key as keyof typeof headerNames]]),
    ),
  });
}
