import {
  cardIpnFields,
  envelopeFields,
  extensionFields,
  type Field,
  type FieldFormat,
  settlementIpnFields,
  settlementListFields,
  toWire,
} from "@paybell/contract";
import { code, type GeneratedFile, markdown, table } from "./document.ts";

const formats: Readonly<Record<FieldFormat, string>> = {
  uuid: "UUID v4",
  yyyymmddhhmmss: "yyyymmddhhmmss",
  "yyyymmddhhmmss-or-iso8601": "yyyymmddhhmmss, or yyyy-mm-ddThh:mm:ssZ",
  amount: "decimal, in the currency's major unit",
  count: "whole number",
};

function values({ values, format }: Field): string {
  if (values !== undefined) return values.map(code).join(", ");
  return format === undefined ? "" : formats[format];
}

function fieldTable(fields: readonly Field[]): string {
  return table(
    ["No", "Field", "Also accepted as", "Type", "Values", "Meaning"],
    fields.map((field) => [
      String(field.no),
      code(field.name),
      field.alias === undefined ? "" : code(field.alias),
      field.type === "list" ? "list of objects" : "string",
      values(field),
      field.meaning,
    ]),
  );
}

/** Every field of the envelope and of both IPNs. */
export function fieldsReference(): GeneratedFile {
  const described = new Set<string>(
    settlementIpnFields.flatMap((field) => ["alias" in field ? field.alias : field.name]),
  );
  const undescribed = Object.keys(toWire("settlement", {}, "sample")).filter((name) => !described.has(name));
  return {
    path: "docs/reference/fields.md",
    text: markdown(
      "Fields",
      "This page lists the fields of an IPN. Each value is a JSON string, except `settlementList`. Every field of a " +
        "table is always present, and is an empty string if its value is unknown.",
      "Some fields have a second name, from the specification's samples. The partner's setting `wireNames` selects " +
        "the names that are sent: `table` (the column Field) or `sample` (the column Also accepted as). A receiver " +
        "accepts a field under either name. An IPN that has a field under both names, or a JSON key twice, is not " +
        "authentic.",
      "## Envelope",
      "The body of the POST: [section 2.1](specification.md#21-the-envelope) of the specification.",
      fieldTable(envelopeFields),
      "## Card transaction IPN",
      "For Sale, Void, PreAuth and PreAuth-Complete: [section 2.2](specification.md#22-the-card-transaction-ipn) of " +
        "the specification. Number 32, `settlementList`, is in the settlement IPN only. `INIT` is never sent. A " +
        "partner that agreed on Refunds also gets the `transaction_type` `REFUND`.",
      fieldTable(cardIpnFields),
      "## Settlement IPN",
      "For Settlement: [section 2.3](specification.md#23-the-settlement-ipn) of the specification. " +
        "`transaction_type` is `SETTLE`, unless the partner agreed on another one.",
      fieldTable(settlementIpnFields),
      `With \`wireNames: "sample"\` the body also has ${undescribed.map(code).join(" and ")}, as empty strings.`,
      "## The extended IPN",
      'A partner with the setting `fields: "extended"` gets these fields too, after those of the table and before ' +
        "`signature`. [What they are for](../partner/headers.md#the-extended-ipn).",
      "Card transaction IPN:",
      fieldTable(extensionFields("card")),
      "Settlement IPN:",
      fieldTable(extensionFields("settlement")),
      "## An entry of settlementList",
      "Rows 19.1 and 19.2 of section 2.3. `reqID` is the name in section 2.2: it is accepted, and never sent.",
      fieldTable(settlementListFields),
    ),
  };
}
