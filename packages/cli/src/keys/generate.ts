import { randomBytes } from "node:crypto";

/** A partner's three keys, each of 32 random bytes and none shared, under the names of a registration. */
export interface GeneratedKeys {
  readonly encryptionKey: string;
  readonly signingKey: string;
  readonly webhookSecret: string;
}

const keyBytes = 32;

export function generateKeys(random: (bytes: number) => Buffer = randomBytes): GeneratedKeys {
  return {
    encryptionKey: random(keyBytes).toString("base64"),
    signingKey: random(keyBytes).toString("base64"),
    webhookSecret: `whsec_${random(keyBytes).toString("base64")}`,
  };
}
