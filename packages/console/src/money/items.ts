import type { MoneyItem } from "../api/operations.ts";

/** The API's fields of each kind of money item; null if unknown. */
export interface TransactionItem extends MoneyItem {
  readonly origin: string;
  readonly command: string;
  readonly state: string;
  readonly tid: string | null;
  readonly batchNo: string | null;
  readonly reqId: string | null;
  readonly externalId: string | null;
  readonly originalId: string | null;
  readonly amount: string | null;
  readonly currency: string | null;
  readonly isoResponseCode: string | null;
  readonly approveCode: string | null;
  readonly refId: string | null;
  readonly reversal: string | null;
  readonly createdAt: string;
  readonly completedAt: string | null;
}

export interface ChainItem extends TransactionItem {
  readonly merchantTransId: string | null;
  readonly notificationId: string | null;
  readonly batchId: string | null;
}

export interface ReversalItem extends MoneyItem {
  readonly tid: string;
  readonly state: "PENDING" | "DONE" | "PARKED";
  readonly responseCode: string | null;
  readonly tries: number;
  readonly dueAt: string;
  readonly createdAt: string;
}

export interface SettlementItem extends MoneyItem {
  readonly kind: string;
  readonly tid: string;
  readonly batchId: string;
  readonly state: string;
  readonly isUploaded: boolean;
  readonly tries: number;
  readonly dueAt: string;
  readonly createdAt: string;
}

export interface BatchItem extends MoneyItem {
  readonly tid: string;
  readonly mid: string;
  readonly batchNo: string;
  readonly currency: string | null;
  readonly settlementId: string;
  readonly saleQuantity: number;
  readonly saleTotalMinor: string;
  readonly voidQuantity: number;
  readonly voidTotalMinor: string;
  readonly closedAt: string;
}
