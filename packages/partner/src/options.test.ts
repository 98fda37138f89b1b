import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type ReceiverOptions, receiver } from "./index.ts";

const raw = Buffer.from("fbf0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e", "hex");
const key = () => randomBytes(32).toString("base64");
const good = (): ReceiverOptions => ({ encryptionKey: key(), signingKey: key(), webhookSecret: `whsec_${key()}` });

function mistake(change: Record<string, unknown>): string {
  try {
    receiver({ ...good(), ...change } as ReceiverOptions);
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError);
    return (error as TypeError).message;
  }
  throw new Error("The options were accepted.");
}

describe("a wrong key", () => {
  const wrong: [what: string, value: unknown, says: RegExp][] = [
    ["is missing", undefined, /is missing: is the environment variable set/],
    ["is empty", "", /is empty: is the environment variable set/],
    ["is hexadecimal", raw.toString("hex"), /is hexadecimal: convert it/],
    ["is base64url", raw.toString("base64url"), /base64url/],
    ["lacks its padding", raw.toString("base64").slice(0, -1), /padding/],
    ["has a line end", `${raw.toString("base64")}\n`, /white space/],
    ["is too short", raw.subarray(16).toString("base64"), /has 16 bytes instead of 32/],
    ["is not base64", "correct horse battery staple", /is not base64/],
    ["is a webhook secret", `whsec_${raw.toString("base64")}`, /is a webhook secret: give that one as webhookSecret/],
    ["is an API key", `pb_${raw.toString("base64url")}`, /is an API key/],
    ["is an empty list", [], /is an empty list/],
    ["is neither text nor list", 7, /neither text nor a list/],
    ["is a list of keys without their objects", [raw.toString("base64")], /\[0\]\.key is not text/],
  ];

  for (const option of ["encryptionKey", "signingKey"]) {
    for (const [what, value, says] of wrong) {
      it(`${option} that ${what} is refused at the start, without its value`, () => {
        const message = mistake({ [option]: value });
        expect(message).toMatch(new RegExp(`^${option}`));
        expect(message).toMatch(says);
        if (typeof value === "string" && value !== "") expect(message).not.toContain(value.slice(0, 12));
      });
    }
  }

  it("webhookSecret that is one of the other keys says so", () => {
    expect(mistake({ webhookSecret: raw.toString("base64") })).toMatch(/whsec_.*swapped/);
    expect(mistake({ webhookSecret: "whsec" })).toMatch(/does not begin with whsec_/);
    expect(mistake({ webhookSecret: `whsec_${raw.toString("hex")}` })).toMatch(/is hexadecimal/);
  });

  it("is one that serves two purposes", () => {
    const text = raw.toString("base64");
    expect(mistake({ encryptionKey: text, signingKey: text })).toMatch(/signingKey is the same key as encryptionKey/);
    expect(mistake({ signingKey: [{ key: text }], webhookSecret: `whsec_${text}` })).toMatch(
      /webhookSecret is the same/,
    );
  });
});

describe("a wrong option", () => {
  const wrong: [options: Record<string, unknown>, says: RegExp][] = [
    [{ freshnessSecond: 10 }, /freshnessSecond is no option: there are .*freshnessSeconds/],
    [{ freshnessSeconds: 0 }, /freshnessSeconds must be/],
    [{ freshnessSeconds: Number.NaN }, /freshnessSeconds must be/],
    [{ freshnessSeconds: Number.POSITIVE_INFINITY }, /freshnessSeconds must be/],
    [{ cipher: "aes-256-ecb" }, /cipher must be one of/],
    [{ encoding: "utf8" }, /encoding must be one of/],
    [{ signing: { mode: "fields", card: ["amount"] } }, /signing\.card must hold id/],
    [{ allowMissingHeaders: "no" }, /true or false/],
  ];
  for (const [options, says] of wrong) {
    it(`${JSON.stringify(options)} is refused at the start`, () => {
      expect(mistake(options)).toMatch(says);
    });
  }
});
