import { createSecretKey, randomBytes, randomUUID } from "node:crypto";
import {
  type CardIpn,
  contractVersion,
  defaultSealing,
  defaultSigning,
  headerNames,
  seal,
  sealingKey,
  sign,
  signedString,
  toWire,
  webhookSignature,
} from "@paybell/contract";
import { Pool } from "undici";
import { sampleSale } from "../packages/contract/src/fields/columns.ts";

/** The receiver of a run's callbacks. */
export interface CallbackTarget {
  /** https://127.0.0.1:<port>/ipn */
  readonly url: string;
  /** PEM. */
  readonly ca: string;
}

/** Signs, seals and POSTs one IPN: what the service sends, byte for byte, and what a user would write without it. */
export interface Callback {
  post(id: string, ipn: CardIpn): Promise<void>;
  close(): Promise<void>;
}

/** Keep-alive HTTPS with undici's Pool. `connections`: at most this many, so many callbacks in flight. */
export function openCallback(target: CallbackTarget, connections: number): Callback {
  const { origin, pathname } = new URL(target.url);
  const pool = new Pool(origin, { connections, connect: { ca: target.ca }, keepAliveTimeout: 60_000 });
  const encryption = sealingKey("bench", randomBytes(32));
  const signing = createSecretKey(randomBytes(32));
  const webhook = createSecretKey(randomBytes(32));

  function envelope(id: string, ipn: CardIpn) {
    const wire = toWire("card", ipn as unknown as Record<string, unknown>, "table");
    wire["signature"] = sign(signedString("card", wire, defaultSigning), signing);
    const body = `{"data":"${seal(JSON.stringify(wire), defaultSealing, encryption)}"}`;
    const timestampS = Math.floor(Date.now() / 1_000);
    const headers = {
      accept: "application/json",
      "content-type": "application/json",
      [headerNames.contract]: contractVersion,
      [headerNames.key]: encryption.id,
      [headerNames.id]: id,
      [headerNames.timestamp]: String(timestampS),
      [headerNames.signature]: webhookSignature(id, timestampS, body, webhook),
      [headerNames.attempt]: "1",
      [headerNames.command]: "SALE",
    };
    return { body, headers };
  }

  return {
    async post(id, ipn) {
      const answer = await pool.request({ path: pathname, method: "POST", ...envelope(id, ipn) });
      await answer.body.dump();
      if (answer.statusCode !== 204) throw new Error(`The receiver answered ${answer.statusCode}.`);
    },
    close: () => pool.close(),
  };
}

/** The same Sale for every row: each field of section 2.2 that a switch fills, 1.1 kB as JSON. */
function saleFields(id: string): Readonly<Record<string, string>> {
  return {
    ...sampleSale,
    amount: "150000",
    appName: "Counter",
    approveCode: "123456",
    billId: "bill-20260131-0001",
    cardHolder: "NGUYEN VAN A",
    deviceId: "device-0001",
    expDate: "",
    extraData: '{"table":"12","waiter":"An"}',
    merchantAddress: "1 Trang Tien, Hanoi",
    merchantId: "M00000000000001",
    merchantName: "Cafe on the corner",
    merchantTransId: `order-${id}`,
    mid: "M00000000000001",
    refId: "600112345678",
    reqId: id,
    tc: "0123456789ABCDEF",
    tid: "T0000001",
    transDateTime: "20260131093000",
  };
}

/** The Sale as its IPN, unsigned. */
export function saleIpn(id: string): CardIpn {
  return { ...saleFields(id), id, transaction_type: "SALE", signature: "" } as unknown as CardIpn;
}

/** A job of a peer. */
export interface SaleJob {
  readonly id: string;
  readonly ipn: CardIpn;
}

export function saleJobs(count: number): readonly SaleJob[] {
  return Array.from({ length: count }, () => {
    const id = randomUUID();
    return { id, ipn: saleIpn(id) };
  });
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
