import { randomUUID } from "node:crypto";

type Fields = Readonly<Record<string, unknown>>;

/** A Sale that the simulated acquirer approves. `card` is merged, everything else replaces. */
export function sale(change: Fields & { readonly card?: Fields } = {}): Record<string, unknown> {
  const { card, ...fields } = change;
  return {
    command: "SALE",
    reqId: randomUUID(),
    amount: "150000",
    currency: "VND",
    tid: "T0000001",
    mid: "M00000000000001",
    merchantTransId: "order-1",
    card: { token: "tok_approve", number: "411111******1111", swipeType: "C", aid: "A0000000031010", ...card },
    ...fields,
  };
}

/** A Sale as a switch reports it, with only the required fields. */
export function reportedSale(partnerId: string, change: Fields = {}): Record<string, unknown> {
  return {
    partnerId,
    externalId: randomUUID(),
    command: "SALE",
    status: "SUCCESS",
    isoResponseCode: "00",
    amount: "150000",
    currency: "VND",
    ...change,
  };
}
