import {
  type CardIpn,
  type Command,
  commands,
  type Field,
  type IpnKind,
  ipnFields,
  type SettlementEntry,
  type SettlementIpn,
  settlementListFields,
  voidableCommands,
} from "@paybell/contract";
import {
  type CompletionField,
  callBackUrl,
  extraDataBytesMax,
  type ListField,
  optionalText,
  requiredText,
  type TextField,
} from "../requests/request.ts";

/** The maximum number of entries in a settlement: the size of a batch. */
const settlementListItemsMax = 50_000;

/** A Refund is only run here: the specification has no name under which a switch could report one. */
export const reportedCommands = commands.filter((command) => command !== "REFUND");

/** In characters. Fields that are missing here have `textLengthMax`. */
const lengthMax: Readonly<Record<string, number>> = {
  amount: 32,
  appName: 128,
  billId: 128,
  callbackUrl: 2048,
  cardHolder: 128,
  cardNumber: 32,
  extraData: extraDataBytesMax,
  isoResponseCode: 4,
  merchantAddress: 512,
  merchantName: 256,
  merchantTransId: 128,
  reqId: 36,
};
const textLengthMax = 64;

const ownFields = [
  requiredText("partnerId", 36, "The partner to notify"),
  requiredText(
    "externalId",
    128,
    "The switch's own id of the transaction; the same one again, for the same partner, is a duplicate",
  ),
  requiredText("command", 16, "What was completed; a system command is recorded and not notified", {
    values: reportedCommands,
  }),
  optionalText("originalExternalId", 128, "The externalId of the transaction that this one voids or completes"),
  optionalText(
    "originalCommand",
    16,
    "What originalExternalId names, for a Void: without it, a Void that is reported before its original waits for it",
    { values: voidableCommands },
  ),
  callBackUrl,
] as const satisfies readonly TextField[];

const settlementCurrency = optionalText(
  "currency",
  3,
  "ISO 4217 code or number of the totals; the settlement IPN has no field for it",
);

/** The table of the specification that has a reported command's fields. System commands use the card's. */
export function completionKind(command: Command): IpnKind {
  return command === "SETTLEMENT" ? "settlement" : "card";
}

/** Every field of a reported completion: our own, then those of its table, in its order, without the signature. */
export const completionFields: Readonly<Record<IpnKind, readonly CompletionField[]>> = {
  card: [...ownFields, ...tableFields("card")],
  settlement: [...ownFields, settlementCurrency, ...tableFields("settlement")],
};

function tableFields(kind: IpnKind): CompletionField[] {
  return ipnFields(kind)
    .filter((field) => field.name !== "signature")
    .map((field) => (field.type === "list" ? listField(field) : textField(field)));
}

function textField(field: Field): TextField {
  return {
    type: "string",
    name: field.name,
    required: field.name === "status" || field.name === "isoResponseCode",
    maxLength: lengthMax[field.name] ?? textLengthMax,
    ...(field.name === "extraData" && { maxBytes: extraDataBytesMax }),
    meaning: field.meaning,
    ...(field.values && { values: reportedValues(field.name, field.values) }),
  };
}

/** A command is reported once it has ended, and no switch reports a Refund. */
function reportedValues(name: string, values: readonly string[]): readonly string[] {
  return name === "status" ? ["SUCCESS", "ERROR"] : values.filter((value) => value !== "REFUND");
}

function listField(field: Field): ListField {
  return {
    type: "list",
    name: field.name,
    required: false,
    maxItems: settlementListItemsMax,
    meaning: field.meaning,
    fields: settlementListFields.map((entry) => ({ ...textField(entry), required: true })),
  };
}

type TableFields = Omit<CardIpn & SettlementIpn, "settlementList" | "signature" | "status">;

/**
 * A command that the operator's switch completed and reports. It may have every field of its table, by its name there.
 * An absent or empty field is unknown. Values are sent as given.
 */
export type CompletionRequest = {
  readonly partnerId: string;
  readonly externalId: string;
  readonly command: Command;
  readonly originalExternalId?: string | undefined;
  readonly originalCommand?: string | undefined;
  readonly callBackUrl?: string | undefined;
  readonly status: string;
  readonly settlementList?: readonly SettlementEntry[] | undefined;
} & { readonly [Name in keyof TableFields]?: string | undefined };
