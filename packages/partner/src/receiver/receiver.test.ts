import { randomBytes } from "node:crypto";
import { inspect } from "node:util";
import { ciphers, encodings, hmacKey, sign, signedString, toWire } from "@paybell/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { IpnRefused, type ReceiverOptions, receiver } from "../index.ts";
import { testDelivery, testEnvelope } from "../testing.ts";

const key = () => randomBytes(32).toString("base64");
const secret = () => `whsec_${key()}`;
const keys = (): ReceiverOptions => ({ encryptionKey: key(), signingKey: key(), webhookSecret: secret() });

function refusal(act: () => unknown): IpnRefused {
  try {
    act();
  } catch (error) {
    if (error instanceof IpnRefused) return error;
    throw error;
  }
  throw new Error("It was accepted.");
}

describe("an authentic IPN", () => {
  it("is opened in every cipher and encoding, under both sets of names", () => {
    for (const cipher of ciphers) {
      for (const encoding of encodings) {
        for (const wireNames of ["table", "sample"] as const) {
          const options = { ...keys(), cipher, encoding };
          const { body, headers } = testDelivery(options, { kind: "card", ipn: { deviceId: "D1" } }, { wireNames });
          const received = receiver(options).open(body, headers);
          expect(received).toMatchObject({
            kind: "card",
            command: undefined,
            headers: { command: "SALE" },
            attempt: 1,
            outOfOrder: false,
          });
          if (received.kind === "card") expect(received.ipn).toMatchObject({ amount: "150000", deviceId: "D1" });
        }
      }
    }
  });

  it("is a settlement when it settles, with its list", () => {
    const options = keys();
    const { body, headers } = testDelivery(options, { kind: "settlement" }, { attempt: 3, notificationId: "n-1" });
    const received = receiver(options).open(body, headers);
    expect(received).toMatchObject({ kind: "settlement", command: "SETTLEMENT", attempt: 3, notificationId: "n-1" });
    if (received.kind === "settlement") expect(received.ipn.settlementList).toHaveLength(1);
  });

  it("may arrive as a string, as a Buffer, as other bytes, with header names in any case or as Headers", () => {
    const options = keys();
    const { body, headers } = testDelivery(options, { kind: "card" });
    const capitals = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]));
    const encode = (text: string) => new TextEncoder().encode(text);
    const bodies = [body, Buffer.from(body), encode(body), encode(`more ${body}`).subarray(5)];
    for (const raw of bodies) {
      for (const given of [headers, capitals, new Headers(headers)]) {
        expect(receiver(options).open(raw, given).kind).toBe("card");
      }
    }
  });

  it("reads a Headers object of another realm, and takes null for absent", () => {
    const options = keys();
    const { body, headers } = testDelivery(options, { kind: "card" });
    const other = { get: (name: string) => headers[name] ?? null };
    expect(receiver(options).open(body, other as never)).toEqual(receiver(options).open(body, headers));
    const withNull = { ...headers, "paybell-original-transaction": null } as never;
    expect(receiver(options).open(body, withNull).headers.originalTransactionId).toBeUndefined();
    expect(refusal(() => receiver(options).open(body, { ...headers, "webhook-id": null } as never)).reason).toBe(
      "missing_headers",
    );
  });

  it("reports what its headers claim as that, and ignores invalid ones", () => {
    const options = keys();
    const { body, headers } = testDelivery(options, { kind: "card" });
    const more = { "paybell-out-of-order": "1", "paybell-original-transaction": "t-1", "paybell-command": "VOID" };
    expect(receiver(options).open(body, { ...headers, ...more })).toMatchObject({
      outOfOrder: true,
      headers: { originalTransactionId: "t-1", command: "VOID" },
      originalTransactionId: undefined,
      command: undefined,
    });
    const nonsense = { "paybell-attempt": "-1", "paybell-command": "SETTLEMENT" };
    expect(receiver(options).open(body, { ...headers, ...nonsense })).toMatchObject({
      attempt: undefined,
      headers: { command: undefined },
    });
  });

  it("takes the command and the original from an extended IPN, and never from a header", () => {
    const options = { ...keys(), fields: "extended" } as const;
    const delivery = { command: "PREAUTH_COMPLETE", originalTransactionId: "t-0" } as const;
    const { body, headers } = testDelivery(options, { kind: "card", ipn: { originalReqId: "r-0" } }, delivery);
    const changed = { ...headers, "paybell-command": "PREAUTH", "paybell-original-transaction": "t-9" };
    expect(receiver(options).open(body, changed)).toMatchObject({
      fields: "extended",
      command: "PREAUTH_COMPLETE",
      originalTransactionId: "t-0",
      headers: { command: "PREAUTH", originalTransactionId: "t-9" },
      ipn: { command: "PREAUTH_COMPLETE", originalId: "t-0", originalReqId: "r-0" },
    });
    const settled = testDelivery(options, { kind: "settlement" });
    expect(receiver(options).open(settled.body, settled.headers)).toMatchObject({
      command: "SETTLEMENT",
      ipn: { command: "SETTLEMENT", currency: "VND" },
    });
  });
});

describe("a key rotation", () => {
  const [oldOptions, newOptions] = [keys(), keys()];
  const both: ReceiverOptions = {
    encryptionKey: [
      { id: "new", key: newOptions.encryptionKey as string },
      { key: oldOptions.encryptionKey as string },
    ],
    signingKey: [{ key: newOptions.signingKey as string }, { key: oldOptions.signingKey as string }],
    webhookSecret: [{ key: newOptions.webhookSecret as string }, { key: oldOptions.webhookSecret as string }],
  };

  it("accepts IPNs sealed and signed with the old or the new versions, in every cipher", () => {
    for (const cipher of ciphers) {
      for (const options of [oldOptions, newOptions]) {
        const id = options === newOptions ? "new" : "old";
        const sender = { ...options, cipher, encryptionKey: [{ id, key: options.encryptionKey as string }] };
        const { body, headers } = testDelivery(sender, { kind: "card" });
        expect(receiver({ ...both, cipher }).open(body, headers).keyId).toBe(id);
      }
    }
  });

  it("accepts an encryption key only if the whole check succeeds", () => {
    // AES-CBC decrypts to valid padding under one wrong key in 256: the right key must still be found after it.
    const options: ReceiverOptions = { ...keys(), cipher: "aes-256-cbc" };
    const wrong = Array.from({ length: 2_000 }, () => ({ key: key() }));
    const rotating = { ...options, encryptionKey: [...wrong, { id: "right", key: options.encryptionKey as string }] };
    const { body, headers } = testDelivery(options, { kind: "card" });
    expect(receiver(rotating).open(body, headers).keyId).toBe("right");
  });

  it("refuses a JWE whose kid is not one of the configured ids", () => {
    const options: ReceiverOptions = { ...keys(), cipher: "jwe" };
    const named = (id: string) => ({ ...options, encryptionKey: [{ id, key: options.encryptionKey as string }] });
    const { body, headers } = testDelivery(named("a"), { kind: "card" });
    expect(refusal(() => receiver(named("b")).open(body, headers)).hint).toContain('key version "a"');
  });
});

describe("an IPN that is not authentic", () => {
  const options: ReceiverOptions = { ...keys(), clock: { nowMs: () => 1_800_000_000_000 } };
  const good = testDelivery(options, { kind: "card" });
  const open = (body: string | Uint8Array, headers: Record<string, string | undefined>) => () =>
    receiver(options).open(body, headers);

  it("looks the same whatever the cause, and reports the reason to its owner", () => {
    const other = keys();
    const from = (change: Partial<ReceiverOptions>) => testDelivery({ ...options, ...change }, { kind: "card" });
    const wire = { ...toWire("card", { id: "1" }, "sample"), deviceId: "again" };
    const signed = {
      ...wire,
      signature: sign(signedString("card", wire, { mode: "fields" }), hmacKey(randomBytes(32))),
    };
    const cases = {
      webhook_signature: from({ webhookSecret: other.webhookSecret }),
      decryption: from({ encryptionKey: other.encryptionKey }),
      signature: from({ signingKey: other.signingKey }),
      not_fresh: from({ clock: { nowMs: () => 1_800_000_000_000 - 301_000 } }),
      two_names: testEnvelope(options, JSON.stringify(signed)),
      duplicate_key: testEnvelope(options, '{"id":"1","id":"2"}'),
      not_json: testEnvelope(options, "[]"),
      wrong_type: testEnvelope(options, '{"amount":1}'),
      wrong_cipher: from({ encoding: "hex", cipher: "jwe" }),
      missing_headers: { body: good.body, headers: {} },
      too_large: { body: "x".repeat(16 * 1024 * 1024 + 1), headers: good.headers },
    };
    const faces = Object.entries(cases).map(([reason, { body, headers }]) => {
      const refused = refusal(open(body, headers));
      expect(refused.reason).toBe(reason);
      expect(refused.hint.length).toBeGreaterThan(20);
      return [refused.message, refused.name, refused.code, refused.stack, JSON.stringify(refused), inspect(refused)];
    });
    expect(new Set(faces.map((face) => JSON.stringify(face))).size).toBe(1);
  });

  it("reports in the hint how far the clocks differ, in either direction", () => {
    const at = (seconds: number) => ({ ...options, clock: { nowMs: () => 1_800_000_000_000 + seconds * 1000 } });
    const hint = (seconds: number) => refusal(() => receiver(at(seconds)).open(good.body, good.headers)).hint;
    expect(hint(301)).toContain("301 s in the past");
    expect(hint(-301)).toContain("301 s in the future");
    expect(receiver(at(300)).open(good.body, good.headers).kind).toBe("card");
    expect(receiver(at(-300)).open(good.body, good.headers).kind).toBe("card");
  });

  it("results from any change of one byte of the body", () => {
    const bytes = Buffer.from(good.body);
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        const changed = Buffer.from(bytes);
        changed[at] = (changed[at] ?? 0) ^ flip;
        refusal(open(changed, good.headers));
      }),
    );
  });

  it("results from any change of a signed header, and from any missing one", () => {
    for (const name of ["webhook-id", "webhook-timestamp", "webhook-signature"]) {
      expect(refusal(open(good.body, { ...good.headers, [name]: undefined })).reason).toBe("missing_headers");
      refusal(open(good.body, { ...good.headers, [name]: `${good.headers[name]}0` }));
    }
  });

  it("results from any garbage, even with a valid webhook signature", () => {
    fc.assert(
      fc.property(fc.string(), (content) => {
        const { body, headers } = testEnvelope(options, content);
        refusal(open(body, headers));
      }),
    );
  });

  it("is recognized before anything is decrypted", () => {
    const sealedWrong = testDelivery({ ...options, ...keys() }, { kind: "card" });
    expect(refusal(open(sealedWrong.body, sealedWrong.headers)).reason).toBe("webhook_signature");
  });

  it("has neither a key nor a control character of the sender in its hint", () => {
    const { body, headers } = testDelivery({ ...options, encryptionKey: key() }, { kind: "card" });
    const { hint } = refusal(open(body, { ...headers, "paybell-key": "k\u001b[2J\n1" }));
    expect(hint).toContain("k\\u001b[2J\\n1");
    expect(hint).not.toContain("\u001b");
    for (const secretOption of ["encryptionKey", "signingKey", "webhookSecret"] as const)
      expect(hint).not.toContain(options[secretOption]);
  });
});

describe("allowMissingHeaders", () => {
  it("accepts an IPN without the headers, then without a notification id", () => {
    const options: ReceiverOptions = { ...keys(), allowMissingHeaders: true };
    const { body } = testDelivery(options, { kind: "card" });
    expect(receiver(options).open(body, {})).toMatchObject({ notificationId: undefined, attempt: undefined });
  });

  it("still refuses headers that are invalid, stale or incomplete", () => {
    const options: ReceiverOptions = { ...keys(), allowMissingHeaders: true };
    const { body, headers } = testDelivery(options, { kind: "card" });
    const wrong = { ...headers, "webhook-id": "another" };
    const incomplete = { ...headers, "webhook-signature": undefined };
    expect(refusal(() => receiver(options).open(body, wrong)).reason).toBe("webhook_signature");
    expect(refusal(() => receiver(options).open(body, incomplete)).reason).toBe("missing_headers");
  });

  it("is refused for aes-256-cbc unless the whole IPN is signed", () => {
    const options: ReceiverOptions = { ...keys(), allowMissingHeaders: true, cipher: "aes-256-cbc" };
    expect(() => receiver(options)).toThrow(/whole/);
    const whole: ReceiverOptions = { ...options, signing: { mode: "whole" } };
    expect(receiver(whole).open(testDelivery(whole, { kind: "card" }).body, {}).kind).toBe("card");
  });
});

describe("a body that is not raw", () => {
  it("is an error for the developer, not a refusal", () => {
    const parsed = { data: "…" } as unknown as string;
    expect(() => receiver(keys()).open(parsed, {})).toThrow(/raw body/);
  });
});
