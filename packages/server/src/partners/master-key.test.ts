import { randomBytes } from "node:crypto";
import { inspect } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { newId } from "../ids.ts";
import {
  type KeyPlace,
  MasterKey,
  MasterKeyMismatch,
  NotSealedByThisKey,
  requireFittingMasterKey,
} from "./master-key.ts";

const place: KeyPlace = { partnerId: newId(), keyId: newId(), kind: "encryptionKey" };

describe("a master key", () => {
  test("opens what it sealed, for the same place alone", () => {
    const key = MasterKey.generate();
    const secret = randomBytes(32);
    const sealed = key.seal(secret, place);
    expect(key.open(sealed, place)).toEqual(secret);
    expect(key.seal(secret, place)).not.toEqual(sealed);
    const elsewhere: KeyPlace[] = [
      { ...place, partnerId: newId() },
      { ...place, keyId: newId() },
      { ...place, kind: "signingKey" },
    ];
    for (const other of elsewhere) expect(() => key.open(sealed, other)).toThrow(NotSealedByThisKey);
    expect(() => MasterKey.generate().open(sealed, place)).toThrow(NotSealedByThisKey);
  });

  test("opens nothing that was changed in any byte", () => {
    const key = MasterKey.generate();
    const sealed = key.seal(Buffer.from("secret"), place);
    fc.assert(
      fc.property(fc.nat(sealed.length - 1), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        const changed = Buffer.from(sealed);
        changed[at] = (changed[at] ?? 0) ^ flip;
        expect(() => key.open(changed, place)).toThrow(NotSealedByThisKey);
      }),
    );
    for (let length = 0; length < sealed.length; length += 1) {
      expect(() => key.open(sealed.subarray(0, length), place)).toThrow(NotSealedByThisKey);
    }
  });

  test("never prints itself", () => {
    const raw = randomBytes(32);
    const key = new MasterKey(raw);
    const shown = [
      String(key),
      JSON.stringify({ key }),
      inspect(key, { depth: 9, showHidden: true }),
      `${inspect([key])}`,
    ].join();
    expect(shown).not.toContain(raw.toString("hex"));
    expect(shown).not.toContain(raw.toString("base64"));
    expect(shown).not.toContain("KeyObject");
  });

  test("is read from the base64 of 32 bytes and nothing else, and a mistake is not repeated aloud", () => {
    const text = randomBytes(32).toString("base64");
    expect(() => MasterKey.parse(`${text}\n`)).not.toThrow();
    for (const wrong of [
      "",
      "secret",
      randomBytes(31).toString("base64"),
      randomBytes(32).toString("hex"),
      text.slice(0, -1),
    ]) {
      expect(() => MasterKey.parse(wrong)).toThrow(/base64 of 32 bytes/);
    }
    expect(() => MasterKey.parse("hunter2hunter2")).not.toThrow(/hunter2/);
    expect(() => new MasterKey(randomBytes(16))).toThrow(/32 bytes, not 16/);
  });
});

describe("at a start", () => {
  function store() {
    let kept: Buffer | undefined;
    return {
      sealedValue: () => Promise.resolve(kept),
      storeSealed: (_: string, check: Buffer) => {
        kept ??= check;
        return Promise.resolve(kept);
      },
    };
  }

  test("a new database takes the master key as its own, and knows it again", async () => {
    const [database, key] = [store(), MasterKey.generate()];
    await requireFittingMasterKey(key, database);
    await requireFittingMasterKey(key, database);
  });

  test("another master key does not fit", async () => {
    const database = store();
    await requireFittingMasterKey(MasterKey.generate(), database);
    const other = requireFittingMasterKey(MasterKey.generate(), database);
    await expect(other).rejects.toThrow(MasterKeyMismatch);
    await expect(other).rejects.toThrow("The master key does not fit this database");
  });

  test("of two instances with different master keys at once, one is refused", async () => {
    const database = store();
    const starts = await Promise.allSettled([
      requireFittingMasterKey(MasterKey.generate(), database),
      requireFittingMasterKey(MasterKey.generate(), database),
    ]);
    expect(starts.map((start) => start.status).sort()).toEqual(["fulfilled", "rejected"]);
  });
});
