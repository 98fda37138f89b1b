import type { CardIpn } from "@paybell/contract";

/** The same Sale for every row: each field of section 2.2 that a switch fills, 1.1 kB as JSON. */
function saleFields(id: string): Readonly<Record<string, string>> {
  return {
    aid: "A0000000031010",
    amount: "150000",
    appName: "Counter",
    approveCode: "123456",
    batchNo: "000001",
    billId: "bill-20260131-0001",
    cardHolder: "NGUYEN VAN A",
    cardNumber: "411111******1111",
    cardScheme: "VISA",
    currency: "VND",
    deviceId: "device-0001",
    expDate: "",
    extraData: '{"table":"12","waiter":"An"}',
    invoiceNo: "000001",
    isoResponseCode: "00",
    merchantAddress: "1 Trang Tien, Hanoi",
    merchantId: "M00000000000001",
    merchantName: "Cafe on the corner",
    merchantTransId: `order-${id}`,
    mid: "M00000000000001",
    paymentType: "card",
    refId: "600112345678",
    reqId: id,
    status: "SUCCESS",
    swipeType: "C",
    tc: "0123456789ABCDEF",
    tid: "T0000001",
    traceNo: "000001",
    transDateTime: "20260131093000",
  };
}

/** The Sale as its IPN, unsigned. */
export function saleIpn(id: string): CardIpn {
  return { ...saleFields(id), id, transaction_type: "SALE", signature: "" } as unknown as CardIpn;
}

/** The Sale as a switch reports it. `externalId` must be new each time. */
export function saleCompletion(partnerId: string, externalId: string): Readonly<Record<string, string>> {
  return { partnerId, externalId, command: "SALE", ...saleFields(externalId) };
}

/** The Sale as a partner asks for it, approved at once. `reqId` must be new each time. */
export function saleCommand(reqId: string, tid: string): Readonly<Record<string, unknown>> {
  const { amount, currency, mid, merchantTransId, billId, extraData, deviceId, appName, aid } = saleFields("1");
  const card = { token: "tok_approve", number: "411111******1111", swipeType: "C", aid };
  const fields = { amount, currency, mid, merchantTransId, billId, extraData, deviceId, appName, card };
  return { command: "SALE", reqId, tid, ...fields };
}
