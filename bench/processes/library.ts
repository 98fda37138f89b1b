import {
  createDecipheriv,
  createHmac,
  createSecretKey,
  type KeyObject,
  randomUUID,
  timingSafeEqual,
} from "node:crypto";
import {
  cardSigningOrder,
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
import { receiver } from "@paybell/partner";
import { saleIpn } from "../sale.ts";
import { answer } from "./channel.ts";

interface Delivery {
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

interface Keys {
  readonly encryption: KeyObject;
  readonly signing: KeyObject;
  readonly webhook: KeyObject;
}

export interface LibraryRound {
  /** Opened and verified a second, one after the other. */
  readonly libraryPerS: number;
  readonly barePerS: number;
}

const deliveries = 512;
const rawKeys = { encryption: Buffer.alloc(32, 1), signing: Buffer.alloc(32, 2), webhook: Buffer.alloc(32, 3) };

/** The partner library beside a function of node:crypto that checks the same two signatures and opens the same seal. */
export function libraryMethods() {
  const keys: Keys = {
    encryption: createSecretKey(rawKeys.encryption),
    signing: createSecretKey(rawKeys.signing),
    webhook: createSecretKey(rawKeys.webhook),
  };
  const samples = Array.from({ length: deliveries }, () => makeDelivery(keys));
  const library = receiver({
    encryptionKey: rawKeys.encryption.toString("base64"),
    signingKey: rawKeys.signing.toString("base64"),
    webhookSecret: `whsec_${rawKeys.webhook.toString("base64")}`,
  });
  const openWithLibrary = ({ body, headers }: Delivery) => {
    const received = library.open(body, headers);
    return received.kind === "card" ? received.ipn.amount : "";
  };
  const openBare = (delivery: Delivery) => bareOpen(delivery, keys);

  return {
    round: ({ durationMs }: { readonly durationMs: number }): LibraryRound => ({
      libraryPerS: perSecond(samples, durationMs, openWithLibrary),
      barePerS: perSecond(samples, durationMs, openBare),
    }),
  };
}

function perSecond(samples: readonly Delivery[], durationMs: number, open: (delivery: Delivery) => string): number {
  const startedMs = performance.now();
  let count = 0;
  while (performance.now() - startedMs < durationMs) {
    for (const sample of samples) {
      if (open(sample) !== "150000") throw new Error("What was opened is not what was sealed.");
    }
    count += samples.length;
  }
  return (count / (performance.now() - startedMs)) * 1_000;
}

function makeDelivery(keys: Keys): Delivery {
  const id = randomUUID();
  const wire = toWire("card", saleIpn(id) as unknown as Record<string, unknown>, "table");
  wire["signature"] = sign(signedString("card", wire, defaultSigning), keys.signing);
  const body = `{"data":"${seal(JSON.stringify(wire), defaultSealing, sealingKey("1", rawKeys.encryption))}"}`;
  const timestampS = Math.floor(Date.now() / 1_000);
  return {
    body: Buffer.from(body),
    headers: {
      [headerNames.id]: id,
      [headerNames.timestamp]: String(timestampS),
      [headerNames.signature]: webhookSignature(id, timestampS, body, keys.webhook),
    },
  };
}

/** Code that a careful partner would write for exactly this configuration. */
function bareOpen({ body, headers }: Delivery, keys: Keys): string {
  const { [headerNames.id]: id, [headerNames.timestamp]: timestamp, [headerNames.signature]: signature = "" } = headers;
  const expected = createHmac("sha256", keys.webhook).update(`${id}.${timestamp}.`).update(body).digest();
  if (!timingSafeEqual(expected, Buffer.from(signature.slice(3), "base64"))) throw new Error("webhook-signature");
  if (Math.abs(Date.now() / 1_000 - Number(timestamp)) > 300) throw new Error("webhook-timestamp");
  const { data } = JSON.parse(body.toString("utf8")) as { data: string };
  const sealed = Buffer.from(data, "base64");
  const decipher = createDecipheriv("aes-256-gcm", keys.encryption, sealed.subarray(0, 12));
  decipher.setAuthTag(sealed.subarray(-16));
  const text = Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()]).toString("utf8");
  const ipn = JSON.parse(text) as Record<string, string>;
  const signed = cardSigningOrder.map((name) => `${name}=${ipn[name] ?? ""}`).join("&");
  const own = createHmac("sha256", keys.signing).update(signed).digest();
  if (!timingSafeEqual(own, Buffer.from(ipn["signature"] ?? "", "hex"))) throw new Error("signature");
  return ipn["amount"] ?? "";
}

if (import.meta.main) answer(process, libraryMethods());
