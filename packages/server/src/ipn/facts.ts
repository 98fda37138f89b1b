import type { CardCommand, SettlementEntry } from "@paybell/contract";

/**
 * The content of a notification: the IPN's facts at commit, under the specification's own names. Names on the wire,
 * time format, codes, signature and encryption follow the partner's settings at each attempt, so they are not included.
 */
export type IpnFacts = CardFacts | SettlementFacts;

/** The fields of section 2.2. An absent field is unknown, and sent as an empty string. */
export interface CardFacts {
  readonly kind: "card";
  readonly command: CardCommand;
  /** True for the Void of a PreAuth, whose transaction_type differs. */
  readonly voidsPreAuth?: boolean;
  /**
   * The reqId of its original, in lower case, for an extended IPN; empty: it has none. Absent if the original was not
   * known, or in facts of an older version: then it is read when the IPN is sent, and no MAC covers it.
   */
  readonly originalReqId?: string;
  /**
   * The acquirer's or the switch's values are kept for the operator: the IPN of a failed command has neither
   * approveCode nor refId, and that of a Void no refId.
   *
   * By the table's names, without transaction_type (unless a switch reported one) and signature. `transDateTime` is an
   * ISO 8601 instant if we processed the command, or the 14 digits reported by a switch, which are sent unchanged.
   */
  readonly fields: Readonly<Record<string, string>>;
}

/** The fields of section 2.3. */
export interface SettlementFacts {
  readonly kind: "settlement";
  readonly command: "SETTLEMENT";
  /**
   * As for a card. `totalAmount` is absent if we settled from our own ledger, and is then computed by the partner's
   * setting.
   */
  readonly fields: Readonly<Record<string, string>>;
  readonly settlementList: readonly SettlementEntry[];
  /** ISO 4217. The settlement IPN has no field for it; it determines the decimals of the totals. */
  readonly currency?: string;
}
