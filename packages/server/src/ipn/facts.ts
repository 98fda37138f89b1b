import type { NotifiedCommand, SettlementEntry } from "@paybell/contract";

/**
 * What a notification holds: the IPN's facts as they were at commit, under the specification's own names. Names on the
 * wire, time format, codes, signature and seal are the partner's settings at each attempt, and so are not among them.
 */
export type IpnFacts = CardFacts | SettlementFacts;

/** The fields of section 2.2. A field that is absent is unknown and goes out as an empty string. */
export interface CardFacts {
  readonly kind: "card";
  readonly command: Exclude<NotifiedCommand, "SETTLEMENT">;
  /** True for the Void of a PreAuth, whose transaction_type differs. */
  readonly voidsPreAuth?: boolean;
  /**
   * What the acquirer or the switch said stays, for the operator: of what did not succeed the IPN has neither
   * approveCode nor refId, and of a Void no refId.
   *
   * By the table's names, without transaction_type (unless a switch reported one) and signature. `transDateTime` is an
   * ISO 8601 instant when we processed the command, or the 14 digits that a switch reported, which go out as they are.
   */
  readonly fields: Readonly<Record<string, string>>;
}

/** The fields of section 2.3. */
export interface SettlementFacts {
  readonly kind: "settlement";
  readonly command: "SETTLEMENT";
  /**
   * As for a card; `totalAmount` is absent when we settled from our own ledger, and is then made by the partner's
   * setting.
   */
  readonly fields: Readonly<Record<string, string>>;
  readonly settlementList: readonly SettlementEntry[];
  /** ISO 4217; the settlement IPN has no field for it, the totals are written with its decimals. */
  readonly currency?: string;
}
