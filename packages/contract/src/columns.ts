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

export function ipnColumns(kind: IpnKind): readonly Column[] {
  return kind === "card" ? cardColumns : settlementColumns;
}
