import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { homeOf, idAt, idOfText, idTimeMs, isUuid, isUuidV4, lowestId, newId, readId } from "./ids.ts";

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe("newId", () => {
  test("is a UUIDv7 that tells the moment it was made", () => {
    const before = Date.now();
    const id = newId();
    expect(id).toMatch(uuidV7);
    expect(idTimeMs(id)).toBeGreaterThanOrEqual(before);
    expect(idTimeMs(id)).toBeLessThanOrEqual(Date.now() + 1);
  });

  test("ids rise strictly, within a millisecond and when the clock steps back", () => {
    const start = Date.now() + 1_000_000;
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -5_000, max: 5_000 }), { minLength: 2, maxLength: 50 }), (steps) => {
        const ids = steps.map((step) => newId(start + step));
        for (const [index, id] of ids.entries()) {
          expect(id).toMatch(uuidV7);
          if (index > 0) expect(id > (ids[index - 1] ?? "")).toBe(true);
        }
      }),
    );
  });

  test("ten thousand ids of one millisecond are distinct, rise, and lend themselves few milliseconds", () => {
    const nowMs = Date.now() + 2_000_000;
    const ids = Array.from({ length: 10_000 }, () => newId(nowMs));
    expect(new Set(ids).size).toBe(10_000);
    expect([...ids].sort()).toEqual(ids);
    expect(idTimeMs(ids.at(-1) ?? "") - idTimeMs(ids[0] ?? "")).toBeLessThanOrEqual(4);
  });
});

describe("readId", () => {
  test("takes any UUID and lowers its case", () => {
    fc.assert(
      fc.property(fc.uuid(), (uuid) => {
        expect(readId(uuid.toUpperCase())).toBe(uuid);
      }),
    );
  });

  test("is undefined for everything that is no UUID", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.uuid().map((uuid) => `${uuid} `),
          fc.uuid().map((uuid) => `{${uuid}}`),
        ),
        (text) => {
          expect(readId(text)).toBeUndefined();
        },
      ),
    );
  });
});

test("isUuidV4 takes version 4 only, isUuid every version", () => {
  fc.assert(
    fc.property(fc.uuid({ version: 4 }), (uuid) => {
      expect(isUuidV4(uuid)).toBe(true);
    }),
  );
  fc.assert(
    fc.property(fc.uuid({ version: [1, 3, 5, 7] }), (uuid) => {
      expect(isUuidV4(uuid)).toBe(false);
      expect(isUuid(uuid)).toBe(true);
    }),
  );
});

test("lowestId is below every id of its millisecond and above every id of the one before", () => {
  fc.assert(
    fc.property(fc.integer({ min: Date.now() + 10_000_000, max: 2 ** 47 }), (atMs) => {
      const bound = lowestId(atMs);
      expect(idTimeMs(bound)).toBe(atMs);
      expect(bound > `${lowestId(atMs - 1).slice(0, 13)}-7fff-bfff-ffffffffffff`).toBe(true);
      expect(bound < `${bound.slice(0, 13)}-7000-8000-000000000000`).toBe(true);
    }),
  );
});

test("an id of a text is the same in every process and version: what is stored has it", () => {
  expect(idOfText("a batch")).toBe("8b0dae9e-a42f-8542-91d9-eaf73f3bc2e9");
  expect(idAt(1_800_000_000_000.5, "a batch")).toBe("01a3185c-5000-8542-91d9-eaf73f3bc2e9");
});

test("consecutive shards share a home", () => {
  expect([0, 63, 64, 255].map((shard) => homeOf(shard, 4))).toEqual([0, 0, 1, 3]);
});
