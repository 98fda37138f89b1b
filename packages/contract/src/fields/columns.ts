/** The names of section 2.2, in its order. settlementList is missing, because only settlement callbacks have it. */
const cardNames = [
  "aid",
  "amount",
  "appName",
  "approveCode",
  "batchNo",
  "billId",
  "cardHolder",
  "cardNumber",
  "cardScheme",
  "currency",
  "deviceId",
  "expDate",
  "extraData",
  "id",
  "invoiceNo",
  "isoResponseCode",
  "merchantAddress",
  "merchantId",
  "merchantName",
  "merchantTransId",
  "mid",
  "paymentType",
  "refId",
  "reqId",
  "status",
  "swipeType",
  "tc",
  "tid",
  "traceNo",
  "transDateTime",
  "transaction_type",
  "signature",
] as const;

/** The names of section 2.3, in its order. */
const settlementNames = [
  "batchNo",
  "callbackUrl",
  "deviceId",
  "extraData",
  "id",
  "merchantTransId",
  "mid",
  "quantity",
  "reqId",
  "saleQuantity",
  "saleTotalAmount",
  "status",
  "tid",
  "totalAmount",
  "transaction_time",
  "transaction_type",
  "voidQuantity",
  "voidTotalAmount",
  "settlementList",
  "signature",
] as const;

/** The names that an extended IPN has after those of its table. They say what it is, and are signed. */
const extensionNames = {
  card: ["command", "originalId", "originalReqId"],
  settlement: ["command", "currency"],
} as const;

/** The names of one row of settlementList: sections 2.2 (rows 32.1 and 32.2) and 2.3 (rows 19.1 and 19.2). */
const entryNames = ["reqId", "refNo"] as const;

/**
 * A second name that receivers accept: the one in the specification's sample body, or, for reqId in settlementList, the
 * one in its other table.
 */
const aliases = {
  card: { approveCode: "approve_code", deviceId: "device_id", paymentType: "payment_type" },
  settlement: { deviceId: "deviceID" },
  entry: { reqId: "reqID" },
};

/** card: Sale, Void, PreAuth, PreAuth-Complete. settlement: Settlement. */
export type IpnKind = "card" | "settlement";

export type CardFieldName = (typeof cardNames)[number];
export type SettlementFieldName = (typeof settlementNames)[number];
export type SettlementEntryName = (typeof entryNames)[number];

/** One row of settlementList. */
export type SettlementEntry = { [N in SettlementEntryName]: string };

/** The card transaction IPN, by the table's names: section 2.2. An unknown value is the empty string. */
export type CardIpn = { [N in CardFieldName]: string };

/** The settlement IPN, by the table's names: section 2.3. An unknown value is the empty string. */
export type SettlementIpn = { [N in SettlementFieldName]: N extends "settlementList" ? SettlementEntry[] : string };

/**
 * The fields of a partner's IPNs, as registered: those of the specification, or in addition `command`, and for a card
 * the transaction that it refers to, for a settlement the currency of its totals.
 */
export type FieldSet = "specification" | "extended";
export const fieldSets = ["specification", "extended"] as const satisfies readonly FieldSet[];

type Extension<K extends IpnKind> = { [N in (typeof extensionNames)[K][number]]: string };

/** `command` is that of the header paybell-command. The other two are empty for what refers to no transaction. */
export type ExtendedCardIpn = CardIpn & Extension<"card">;

/** `command` is SETTLEMENT, and `currency` that of the totals. */
export type ExtendedSettlementIpn = SettlementIpn & Extension<"settlement">;

export type UnsignedIpn<I> = Omit<I, "signature">;

/** The properties needed to read and write a field. Its meaning is in fields.ts, which a receiver need not load. */
export interface Column<N extends string = string> {
  /** The name in the table. It is the one that is signed, and the default on the wire. */
  readonly name: N;
  /** Every scalar is a JSON string; settlementList is the only list. */
  readonly type: "string" | "list";
  readonly alias?: string;
}

export const cardColumns = columns(cardNames, aliases.card);
export const settlementColumns = columns(settlementNames, aliases.settlement);
export const settlementListColumns = columns(entryNames, aliases.entry);

function columns<N extends string>(
  names: readonly N[],
  others: Readonly<Record<string, string>>,
): readonly Column<N>[] {
  return names.map((name) => {
    const alias = others[name];
    return { name, type: name === "settlementList" ? "list" : "string", ...(alias === undefined ? {} : { alias }) };
  });
}

/** The fields that an extended IPN adds, in the order in which they are sent and signed. */
export const extensionColumns = {
  card: columns(extensionNames.card, {}),
  settlement: columns(extensionNames.settlement, {}),
} satisfies Record<IpnKind, readonly Column[]>;

const columnsOf = {
  specification: { card: cardColumns, settlement: settlementColumns },
  extended: { card: extended("card", cardColumns), settlement: extended("settlement", settlementColumns) },
} satisfies Record<FieldSet, Record<IpnKind, readonly Column[]>>;

/** The signature stays the last. */
function extended(kind: IpnKind, table: readonly Column[]): readonly Column[] {
  return [...table.slice(0, -1), ...extensionColumns[kind], ...table.slice(-1)];
}

export function ipnColumns(kind: IpnKind, fields: FieldSet = "specification"): readonly Column[] {
  return columnsOf[fields][kind];
}

/** A plausible Sale on a test card, by the table's names: the fields that are alike in every sample card IPN. */
export const sampleSale = {
  aid: "A0000000031010",
  batchNo: "000001",
  cardNumber: "411111******1111",
  cardScheme: "VISA",
  currency: "VND",
  invoiceNo: "000001",
  isoResponseCode: "00",
  paymentType: "card",
  status: "SUCCESS",
  swipeType: "C",
  traceNo: "000001",
} as const satisfies Partial<CardIpn>;
