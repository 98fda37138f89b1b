import { webhookKey } from "@paybell/contract";
import type { Kind } from "./kind.ts";

const key32: Kind<Buffer> = {
  description: "the base64 of 32 bytes",
  read(value) {
    const bytes = Buffer.from(value, "base64");
    return bytes.length === 32 && bytes.toString("base64") === value ? bytes : undefined;
  },
};

/** Plain, or as wrapped by a key service. */
export const masterKeyText: Kind<Buffer | string> = {
  description: `${key32.description}, or what a key service wrapped (vault:v1:… or aws:kms:…)`,
  read: (value) => key32.read(value) ?? (/^(vault:v\d+|aws:kms):[A-Za-z0-9+/=]+$/.test(value) ? value : undefined),
};

export const token: Kind<string> = {
  description:
    "a string of at least 32 letters, digits, or - . _ ~ + / = that cannot be guessed, as `openssl rand -hex 32` " +
    "prints one",
  read: (value) => (/^[A-Za-z0-9\-._~+/=]{32,}$/.test(value) && bitsOf(value) >= tokenBitsMin ? value : undefined),
};

/** 32 random hexadecimal digits have 100 and more. */
const tokenBitsMin = 90;

/** Estimates the entropy of a text by the frequency of its characters; of a repetitive one, only the repeated part. */
function bitsOf(text: string): number {
  const once = text.slice(0, periodOf(text));
  const counts = new Map<string, number>();
  for (const character of once) counts.set(character, (counts.get(character) ?? 0) + 1);
  return [...counts.values()].reduce((bits, count) => bits + count * Math.log2(once.length / count), 0);
}

function periodOf(text: string): number {
  for (let period = 1; period < text.length; period += 1) {
    if (text.startsWith(text.slice(period))) return period;
  }
  return text.length;
}

export const webhookSecret: Kind<string> = {
  description: "whsec_ and the base64 of 32 bytes",
  read(value) {
    try {
      webhookKey(value);
      return value;
    } catch {
      return undefined;
    }
  },
};
