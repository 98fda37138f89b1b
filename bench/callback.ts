import { createSecretKey, randomBytes } from "node:crypto";
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
