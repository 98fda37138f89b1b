import { printable } from "../printable.ts";

/** A partner as the operator API and GET /v1/self answer it. */
export interface PartnerRecord {
  readonly id: string;
  readonly state: "active" | "paused" | "disabled";
  readonly settings: Readonly<Record<string, unknown>> & { readonly name: string };
  readonly keys: readonly KeyVersion[];
  readonly createdAt: string;
}

export interface KeyVersion {
  readonly id: string;
  readonly kind: "apiKey" | "encryptionKey" | "signingKey" | "webhookSecret";
  readonly activeFrom: string;
  readonly expiresAt: string | null;
}

export const keyKinds = ["apiKey", "encryptionKey", "signingKey", "webhookSecret"] as const;

/** Settings one on a line, then the key versions, which never show a key. */
export function partnerLines({ id, state, settings, keys, createdAt }: PartnerRecord): string[] {
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
