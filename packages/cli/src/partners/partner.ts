import type { Self } from "@paybell/partner/client";
import { printable } from "../printable.ts";

/** A partner as the operator API and GET /v1/self answer it. */
export type RegisteredPartner = Pick<Self, "id" | "state" | "settings" | "keys" | "createdAt">;

export const apiKeyScopes = ["read", "pull", "commands", "manage"] as const;
export const keyKinds = ["apiKey", "encryptionKey", "signingKey", "webhookSecret"] as const;

/** Settings one on a line, then the key versions, which never show a key. */
export function partnerLines({ id, state, settings, keys, createdAt }: RegisteredPartner): string[] {
  const width = Math.max(...Object.keys(settings).map((name) => name.length));
  return [
    printable(`${settings.name}  ${id}  ${state}, since ${createdAt}`),
    "",
    ...Object.entries(settings).map(([name, value]) => `  ${name.padEnd(width)}  ${printable(text(value))}`),
    "",
    "Keys",
    ...keys.map(({ kind, id: version, activeFrom, expiresAt }) => {
      const end = expiresAt === null ? "" : `, ends ${expiresAt}`;
      return `  ${kind.padEnd(13)}  ${version}  from ${activeFrom}${end}`;
    }),
  ];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
