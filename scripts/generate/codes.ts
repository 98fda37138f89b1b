import {
  aids,
  type Command,
  commands,
  currencies,
  headerNames,
  notifiedCommands,
  paymentTypes,
  responseCodes,
  statuses,
  swipeTypes,
  type TransactionType,
  transactionTypes,
} from "@paybell/contract";
import { partnerSettings } from "../../packages/server/src/partners/settings.ts";
import { code, type GeneratedFile, markdown, table } from "./document.ts";

const headerMeanings: Readonly<Record<keyof typeof headerNames, string>> = {
  id: "The notification's id, the same at every attempt",
  timestamp: "When this attempt was signed, in seconds since 1970",
  signature:
    "Standard Webhooks v1 over the body as sent; during a rotation of the secret one entry for each, separated by a " +
    "space",
  attempt: "The number of this attempt, from 1",
  contract: "The version of the notification contract",
  key: "The public id of the encryption key's version; absent with `jwe`, which names it as `kid`",
  command: "The precise command that completed",
  originalTransaction: "The id of the transaction that this one voids, completes or refunds",
  outOfOrder: "1 if this IPN was sent before an earlier one that it should have followed; absent otherwise",
};

const notified: ReadonlySet<string> = new Set(notifiedCommands);

function notifiedIn(command: Command): string {
  if (command === "REFUND") return "if the partner agreed on it";
  return notified.has(command) ? "yes" : "never";
}

function commandsOf(type: TransactionType): string {
  const names = Object.entries(partnerSettings.transactionTypes.initial ?? {}).filter(([, one]) => one === type);
  return names.map(([name]) => (name === "VOID_PREAUTH" ? "`VOID` of a `PREAUTH`" : code(name))).join(", ");
}

/** Every code that an IPN, its headers or a command can carry. */
export function codesReference(): GeneratedFile {
  const currencyRows = [...new Set(currencies.values())].sort().map((decimals) => {
    const codes = [...currencies].filter(([, digits]) => digits === decimals).map(([name]) => name);
    return [String(decimals), codes.sort().join(" ")];
  });
  return {
    path: "docs/reference/codes.md",
    text: markdown(
      "Codes",
      "## Commands",
      "Sections [1](specification.md#1-what-is-notified) and [6](specification.md#6-events) of the specification, " +
        "which does not have `REFUND`. Whether a command is notified by an IPN:",
      table(
        ["Command", "Notified"],
        commands.map((command) => [code(command), notifiedIn(command)]),
      ),
      "## transaction_type",
      table(
        ["Code", "Commands, by default"],
        transactionTypes.map((type) => [code(type), commandsOf(type)]),
      ),
      "## status",
      `${statuses.map(code).join(", ")}. \`INIT\` is never sent.`,
      "## paymentType",
      `${paymentTypes.map(code).join(", ")}. \`qrmo\` and \`qrmo_api\` are payments without a card.`,
      "## swipeType",
      "[Section 2.4](specification.md#24-reference-codes) of the specification. `CL` and `CLS` are sent in place of " +
        "`C` and `CTL` if the partner's setting `swipeTypes` is `contact`.",
      table(
        ["Code", "Meaning"],
        swipeTypes.map((swipe) => [code(swipe.code), swipe.meaning]),
      ),
      "## cardScheme by AID",
      "[Section 2.4](specification.md#24-reference-codes) of the specification. An AID outside the table has the " +
        "scheme of its first 10 hexadecimal digits, or none.",
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
