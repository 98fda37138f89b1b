import {
  aids,
  commands,
  currencies,
  headerNames,
  notifiedCommands,
  paymentTypes,
  responseCodes,
  statuses,
  swipeTypes,
  transactionTypes,
} from "@paybell/contract";
import { code, type GeneratedFile, markdown, table } from "./document.ts";

const headerMeanings: Readonly<Record<keyof typeof headerNames, string>> = {
  id: "The notification's id, the same at every attempt",
  timestamp: "When this attempt was signed, in seconds since 1970",
  signature:
    "Standard Webhooks v1 over the body as sent; during a rotation of the secret one entry for each, separated by a " +
    "space",
  attempt: "The number of this attempt, from 1",
  contract: "The version of the notification contract",
  key: "The public id of the encryption key's version; a JWE names it in `kid`",
  command: "The precise command that completed",
  originalTransaction: "The id of the transaction that this one voids or completes",
  outOfOrder: "1 if this IPN was sent before an earlier one of its chain",
};

/** Every code that an IPN, its headers or a command can carry. */
export function codesReference(): GeneratedFile {
  const notified = new Set<string>(notifiedCommands);
  const currencyRows = [...new Set(currencies.values())].sort().map((decimals) => {
    const codes = [...currencies].filter(([, digits]) => digits === decimals).map(([name]) => name);
    return [String(decimals), codes.sort().join(" ")];
  });
  return {
    path: "docs/reference/codes.md",
    text: markdown(
      "Codes",
      "## Commands",
      "Sections [1](specification.md#1-what-is-notified) and [6](specification.md#6-events) of the specification.",
      table(
        ["Command", "Notified"],
        commands.map((command) => [code(command), notified.has(command) ? "yes" : "never"]),
      ),
      "## transaction_type",
      transactionTypes.map(code).join(", "),
      "## status",
      statuses.map(code).join(", "),
      "## paymentType",
      paymentTypes.map(code).join(", "),
      "## swipeType",
      "[Section 2.4](specification.md#24-reference-codes) of the specification, and the two codes of section 2.2, " +
        "number 26.",
      table(
        ["Code", "Meaning"],
        swipeTypes.map((swipe) => [code(swipe.code), swipe.meaning]),
      ),
      "## cardScheme by AID",
      "[Section 2.4](specification.md#24-reference-codes) of the specification. An AID outside the table has the " +
        "scheme of its first 10 hexadecimal digits.",
      table(
        ["AID", "cardScheme", "Kind"],
        aids.map(({ aid, scheme, kind }) => [code(aid), code(scheme), kind]),
      ),
      "## isoResponseCode",
      "ISO 8583:1987, data element 39. Only `00` is success; a code outside the table is an error too.",
      table(
        ["Code", "Meaning"],
        responseCodes.map((response) => [code(response.code), response.meaning]),
      ),
      "## currency",
      "ISO 4217, grouped by the number of decimals that an amount may have.",
      table(["Decimals", "Currencies"], currencyRows),
      "## Headers",
      "In addition to `accept` and `Content-Type` of [section 4.1](specification.md#41-the-request) of the " +
        "specification.",
      table(
        ["Header", "Meaning"],
        Object.entries(headerNames).map(([key, name]) => [code(name), headerMeanings[key as keyof typeof headerNames]]),
      ),
    ),
  };
}
