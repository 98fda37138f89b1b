import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  encryptionKey,
  type HeaderVector,
  headerKey,
  type SealingVector,
  type SigningVector,
  signingKey,
} from "../scripts/vectors/material.ts";
import type { RefusedVector } from "../scripts/vectors/refused.ts";
import { vectorFiles, vectorsFolder } from "../scripts/vectors.ts";
import { NotAuthentic, openAndVerify, seal, sign, signedString, webhookSignatureMatches } from "../src/index.ts";

function committed<V>(name: string): V[] {
  const vectors = JSON.parse(readFileSync(new URL(name, vectorsFolder), "utf8")).vectors;
  expect(vectors.length).toBeGreaterThan(0);
  return vectors;
}

function agreement({ sealing, signing, fields, encryptionKeys, signingKeys }: SealingVector | RefusedVector) {
  return {
    ...(fields && { fields }),
    sealing,
    signing,
    encryptionKeys: encryptionKeys.map(encryptionKey),
    signingKeys: signingKeys.map(signingKey),
  };
}

describe("the committed vectors", () => {
  test("are exactly what the generator writes", () => {
    const generated = vectorFiles();
    const names = readdirSync(vectorsFolder).filter((name) => name.endsWith(".json"));
    expect(names.sort()).toEqual([...generated.keys()].sort());
    for (const [name, text] of generated) expect(readFileSync(new URL(name, vectorsFolder), "utf8")).toBe(text);
  });

  test("have a signed string and a signature that we compute", () => {
    for (const vector of committed<SigningVector>("signing.json")) {
      const text = signedString(vector.kind, vector.wire, vector.signing, vector.fields);
      expect(text, vector.name).toBe(vector.signedString);
      expect(sign(text, signingKey("sk-1")), vector.name).toBe(vector.signature);
    }
  });

  test("contain sealed notifications that we seal identically, and open", () => {
    for (const vector of committed<SealingVector>("sealing.json")) {
      const iv = () => Buffer.from(vector.ivHex, "hex");
      expect(seal(vector.plain, vector.sealing, encryptionKey(vector.keyId), iv), vector.name).toBe(vector.data);
      const opened = openAndVerify(vector.body, agreement(vector));
      expect(opened, vector.name).toMatchObject({ kind: vector.kind, keyId: vector.keyId, ipn: vector.ipn });
    }
  });

  test("contain notifications that we refuse, each for its stated reason and all with the same error", () => {
    const faces = new Set<string>();
    for (const vector of committed<RefusedVector>("refused.json")) {
      const refusal = refusalOf(() => openAndVerify(vector.body, agreement(vector)));
      expect(`${vector.name}: ${refusal.reason}`).toBe(`${vector.name}: ${vector.reason}`);
      faces.add(face(refusal));
    }
    expect(faces.size).toBe(1);
  });

  test("hold header signatures that we accept", () => {
    for (const { name, id, timestamp, body, signature } of committed<HeaderVector>("headers.json")) {
      expect(webhookSignatureMatches(signature, id, timestamp, body, [headerKey]), name).toBe(true);
      expect(webhookSignatureMatches(signature, id, timestamp, `${body} `, [headerKey]), name).toBe(false);
    }
  });
});

function refusalOf(act: () => unknown): NotAuthentic {
  try {
    act();
  } catch (error) {
    if (error instanceof NotAuthentic) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

/** Everything that a careless handler could reveal of an error. */
function face(error: Error): string {
  const own = Object.getOwnPropertyNames(error).map((name) => [name, Reflect.get(error, name)]);
  return JSON.stringify([error.name, error.message, String(error), { ...error }, own]);
}
