import type { ReceivedIpn } from "@paybell/partner";
import { amountOf, merchantTransIdOf, reqIdOf } from "./journal.ts";

interface Change {
  readonly command?: "SALE" | "VOID" | "PREAUTH" | "PREAUTH_COMPLETE";
  readonly transactionId?: string;
  readonly notificationId?: string;
  readonly outOfOrder?: boolean;
  readonly amount?: string;
}

/** The IPN of a command, as a partner opened it. */
export function cardIpn(no: number, change: Change = {}): ReceivedIpn {
  const { command = "SALE", transactionId = `t-${no}`, notificationId = `n-${no}`, outOfOrder = false } = change;
  const ipn = {
    id: transactionId,
    merchantTransId: merchantTransIdOf(no),
    amount: change.amount ?? String(amountOf(no)),
    status: "SUCCESS",
    transaction_type: command === "VOID" ? "VOID" : "SALE",
    tid: "T1",
    batchNo: "000001",
  };
  return { kind: "card", headers: { command }, notificationId, outOfOrder, ipn } as unknown as ReceivedIpn;
}

/** The IPN of a settlement that counts these Sales and the Voids among them. */
export function settlementIpn(no: number, sales: readonly number[], voided: readonly number[]): ReceivedIpn {
  const total = (numbers: readonly number[]) => numbers.reduce((sum, one) => sum + amountOf(one), 0);
  const ipn = {
    id: `t-${no}`,
    merchantTransId: merchantTransIdOf(no),
    status: "SUCCESS",
    tid: "T1",
    batchNo: "000001",
    saleQuantity: String(sales.length),
    saleTotalAmount: String(total(sales)),
    voidQuantity: String(voided.length),
    voidTotalAmount: String(total(voided)),
    quantity: String(sales.length - voided.length),
    totalAmount: String(total(sales) + total(voided)),
    settlementList: sales
      .filter((sale) => !voided.includes(sale))
      .map((sale) => ({ reqId: reqIdOf(sale), refNo: "r" })),
  };
  return {
    kind: "settlement",
    headers: { command: "SETTLEMENT" },
    notificationId: `n-${no}`,
    outOfOrder: false,
    ipn,
  } as unknown as ReceivedIpn;
}
