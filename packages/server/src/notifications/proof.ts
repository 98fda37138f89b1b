import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import { canonicalJson } from "@paybell/contract";
import { callbackUrlOf } from "../notification.ts";
import type { Partner } from "../partners/partner.ts";
import type { Seal } from "./pull.ts";
import type { KeptProof, NotificationContent } from "./store.ts";
import { isoTime, kindOf, type NotificationDetail } from "./view.ts";

/** The DER prefix of a PKCS #8 Ed25519 key, up to its 32 bytes (RFC 8410). */
const pkcs8Lead = Buffer.from("302e020100300506032b657004220420", "hex");

/** Signs proofs with one key for every instance. A rotation of the master key does not change it. */
export class ProofSigner {
  readonly #key: KeyObject;
  /** SubjectPublicKeyInfo in base64. */
  readonly publicKey: string;

  /** @param seed 32 secret bytes */
  constructor(seed: KeyObject) {
    this.#key = createPrivateKey({ key: Buffer.concat([pkcs8Lead, seed.export()]), format: "der", type: "pkcs8" });
    this.publicKey = createPublicKey(this.#key).export({ format: "der", type: "spki" }).toString("base64");
  }

  /** A notification's history for a dispute. */
  prove({ waiting: _, ...detail }: NotificationDetail, content: Pick<NotificationContent, "content">, nowMs: number) {
    const contentSha256 = createHash("sha256").update(content.content).digest("hex");
    return this.#signed({ issuedAt: isoTime(nowMs), contentSha256, ...detail });
  }

  /** The same in short, of a notification whose history is over. */
  proveKept({ createdAtMs, startedAtMs, ...kept }: KeptProof, nowMs: number) {
    const [createdAt, startedAt] = [isoTime(createdAtMs), isoTime(startedAtMs)];
    return this.#signed({ issuedAt: isoTime(nowMs), ...kept, createdAt, startedAt, state: "accepted" as const });
  }

  /** Signs the canonical JSON (RFC 8785) of `proof`. */
  #signed<Proof extends object>(proof: Proof) {
    const value = sign(null, Buffer.from(canonicalJson(proof)), this.#key).toString("base64");
    return { proof, signature: { algorithm: "Ed25519" as const, publicKey: this.publicKey, value } };
  }
}

/** Everything that an attempt would send now. It contains what the partner would read, and no key. */
export async function explain(content: NotificationContent, partner: Partner, seal: Seal) {
  const { settings, keys } = partner;
  const url = callbackUrlOf(content, partner.settings);
  const { headers, body, wire, signedText: text } = await seal(partner, content, url ?? "");
  return {
    kind: kindOf(content.command),
    ipn: wire,
    signed: { mode: settings.signing.mode, text, keyId: keys.signing.id },
    cipher: settings.cipher,
    encoding: settings.encoding,
    url,
    encryptionKeyId: keys.encryption.id,
    headers,
    body: body.toString(),
  };
}
