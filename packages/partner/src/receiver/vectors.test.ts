import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { IpnRefused, type ReceiverOptions, receiver } from "../index.ts";

interface Vector {
  readonly name: string;
  readonly expect: "accept" | "refuse";
  readonly nowSeconds: number;
  readonly cipher: NonNullable<ReceiverOptions["cipher"]>;
  readonly encoding: NonNullable<ReceiverOptions["encoding"]>;
  readonly signing: NonNullable<ReceiverOptions["signing"]>;
  readonly fields?: NonNullable<ReceiverOptions["fields"]>;
  readonly encryptionKey: readonly { readonly id: string; readonly key: string }[];
  readonly signingKey: readonly { readonly key: string }[];
  readonly webhookSecret: readonly { readonly key: string }[];
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly keyId?: string;
  readonly kind?: string;
  readonly ipn?: unknown;
}

const file = new URL("../../../../docs/partner/vectors.json", import.meta.url);
const published = JSON.parse(readFileSync(file, "utf8")) as Record<"vectors" | "extended", readonly Vector[]>;
const { vectors, extended } = published;

function receive({ body, headers, nowSeconds, ...vector }: Vector) {
  const { encryptionKey, signingKey, webhookSecret, cipher, encoding, signing, fields } = vector;
  return receiver({
    encryptionKey,
    signingKey,
    webhookSecret,
    cipher,
    encoding,
    signing,
    ...(fields && { fields }),
    clock: { nowMs: () => nowSeconds * 1000 },
  }).open(body, headers);
}

describe("the published vectors", () => {
  const names = (what: Vector["expect"]) => [...vectors, ...extended].filter((vector) => vector.expect === what);

  it.each(names("accept"))("are accepted: $name", (vector) => {
    const { kind, ipn, keyId } = receive(vector);
    expect({ kind, ipn, keyId }).toEqual({ kind: vector.kind, ipn: vector.ipn, keyId: vector.keyId });
  });

  it.each(names("refuse"))("are refused: $name", (vector) => {
    expect(() => receive(vector)).toThrow(IpnRefused);
  });

  it("contain every cipher with every encoding, agreement and kind, and have different names", () => {
    const good = vectors.filter(({ expect }) => expect === "accept");
    const combinations = good.map(({ cipher, encoding, signing, kind }) =>
      JSON.stringify([cipher, encoding, signing, kind]),
    );
    expect(new Set(combinations).size).toBe(7 * 3 * 2);
    expect(names("refuse").length).toBeGreaterThan(60);
    const all = [...vectors, ...extended];
    expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
  });
});
