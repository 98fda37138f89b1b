import {
  addDecimals,
  type CardIpn,
  cardIpnFields,
  type ExtendedCardIpn,
  type ExtendedSettlementIpn,
  type NotifiedCommand,
  readDecimal,
  type SettlementIpn,
  settlementIpnFields,
  type TransactionType,
  type UnsignedIpn,
  writeDecimal,
} from "@paybell/contract";
import { utcTimestamp, zoneFormat } from "../time.ts";
import type { CardFacts, IpnFacts, SettlementFacts } from "./facts.ts";

/** The partner's setting for the total: Sales plus Voids, as the specification says, or Sales minus Voids. */
export type SettlementTotal = "sum" | "net";

/**
 * totalAmount of section 2.3 from the two totals, exactly, with the decimals of the more precise one. Empty if either
 * is not a decimal number: a wrong total is worse than none.
 */
export function totalAmount(saleTotal: string, voidTotal: string, which: SettlementTotal): string {
  const [sales, voids] = [readDecimal(saleTotal), readDecimal(voidTotal)];
  if (sales === undefined || voids === undefined) return "";
  return writeDecimal(addDecimals(sales, voids, which === "sum" ? 1n : -1n));
}

/** The partner settings that determine an IPN's values. Names on the wire, signature and encryption come later. */
export interface RenderSettings {
  readonly transactionTypes: Readonly<Record<NotifiedCommand | "VOID_PREAUTH", TransactionType>>;
  /** `contact` sends C as CL and CTL as CLS. */
  readonly swipeTypes: "code" | "contact";
  readonly settlementTotal: SettlementTotal;
  /** `iso8601` sends transaction_time as in the specification's sample. */
  readonly transactionTime: "table" | "iso8601";
  /** IANA name. */
  readonly timeZone: string;
}

export interface RenderedFor {
  /** The URL of the attempt: a settlement IPN contains it, section 2.3 field 2. */
  readonly callbackUrl: string;
}

/** Every field of the table, in its order, unknown ones empty, without signature. */
export type RenderedIpn =
  | { readonly kind: "card"; readonly ipn: UnsignedIpn<CardIpn> }
  | { readonly kind: "settlement"; readonly ipn: UnsignedIpn<SettlementIpn> };

/** Renders an IPN as the partner is configured now, from its facts at commit. */
export function renderIpn(facts: CardFacts, settings: RenderSettings, at: RenderedFor): RenderedIpn & { kind: "card" };
export function renderIpn(facts: IpnFacts, settings: RenderSettings, at: RenderedFor): RenderedIpn;
export function renderIpn(facts: IpnFacts, settings: RenderSettings, at: RenderedFor): RenderedIpn {
  if (facts.kind === "card") return { kind: "card", ipn: renderCard(facts, settings) };
  return { kind: "settlement", ipn: renderSettlement(facts, settings, at) };
}

/** The original of a follow-up, as far as it is known. */
interface Original {
  readonly originalId: string | null;
  readonly originalReqId?: string | undefined;
}

/** Renders it for a partner with `fields: "extended"`. What is unknown is empty. */
export function renderExtended(
  facts: IpnFacts,
  settings: RenderSettings,
  at: RenderedFor & Original,
):
  | { readonly kind: "card"; readonly ipn: UnsignedIpn<ExtendedCardIpn> }
  | { readonly kind: "settlement"; readonly ipn: UnsignedIpn<ExtendedSettlementIpn> } {
  const { command } = facts;
  if (facts.kind === "settlement") {
    const ipn = { ...renderSettlement(facts, settings, at), command, currency: facts.currency ?? "" };
    return { kind: "settlement", ipn };
  }
  const { originalId, originalReqId = facts.originalReqId ?? "" } = at;
  return {
    kind: "card",
    ipn: { ...renderCard(facts, settings), command, originalId: originalId ?? "", originalReqId },
  };
}

const contactTypes: Readonly<Record<string, string>> = { C: "CL", CTL: "CLS" };

const cardNames = cardIpnFields.flatMap(({ name }) => (name === "signature" ? [] : [name]));
/** Without values. A copy is made faster than by adding the keys one by one. */
const blankCard = Object.fromEntries(cardNames.map((name) => [name, ""])) as UnsignedIpn<CardIpn>;

function renderCard(facts: CardFacts, settings: RenderSettings): UnsignedIpn<CardIpn> {
  const { fields } = facts;
  const rendered: UnsignedIpn<CardIpn> & Record<string, string> = { ...blankCard };
  for (const name of cardNames) rendered[name] = fields[name] ?? "";
  const isSuccess = rendered.status === "SUCCESS";
  if (!isSuccess) rendered.approveCode = "";
  if (!isSuccess || facts.command === "VOID") rendered.refId = "";
  rendered.transDateTime = renderTime(rendered.transDateTime, "table", settings.timeZone);
  if (settings.swipeTypes === "contact") rendered.swipeType = contactTypes[rendered.swipeType] ?? rendered.swipeType;
  if (rendered.transaction_type === "") rendered.transaction_type = cardTransactionType(facts, settings);
  return rendered;
}

function cardTransactionType(facts: CardFacts, settings: RenderSettings): TransactionType {
  return settings.transactionTypes[facts.voidsPreAuth === true ? "VOID_PREAUTH" : facts.command];
}

function renderSettlement(
  facts: SettlementFacts,
  settings: RenderSettings,
  at: RenderedFor,
): UnsignedIpn<SettlementIpn> {
  const { fields } = facts;
  const ipn: Record<string, unknown> = {};
  for (const { name, type } of settlementIpnFields) {
    if (name !== "signature") ipn[name] = type === "list" ? facts.settlementList : (fields[name] ?? "");
  }
  const rendered = ipn as UnsignedIpn<SettlementIpn>;
  rendered.transaction_time = renderTime(rendered.transaction_time, settings.transactionTime, settings.timeZone);
  if (rendered.callbackUrl === "") rendered.callbackUrl = at.callbackUrl;
  if (rendered.transaction_type === "") rendered.transaction_type = settings.transactionTypes.SETTLEMENT;
  if (rendered.totalAmount === "") {
    rendered.totalAmount = totalAmount(rendered.saleTotalAmount, rendered.voidTotalAmount, settings.settlementTotal);
  }
  return rendered;
}

/** A value that is not an instant, such as a switch's 14 digits, is sent unchanged. */
function renderTime(value: string, format: RenderSettings["transactionTime"], timeZone: string): string {
  if (!value.includes("T")) return value;
  const atMs = Date.parse(value);
  if (Number.isNaN(atMs)) return value;
  return format === "iso8601" ? utcTimestamp(atMs) : zoneFormat(timeZone)(atMs);
}
