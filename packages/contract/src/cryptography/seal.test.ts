import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { pooledRandom } from "./seal.ts";

test("random bytes are given out once, in the order in which they were drawn, and never change", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 5000 }), { maxLength: 40 }), (sizes) => {
      const drawn: Buffer[] = [];
      const random = pooledRandom((bytes) => {
        const pool = randomBytes(bytes);
        drawn.push(pool);
        return pool;
      });
      const given = sizes.map((bytes) => random(bytes));
      const copies = given.map((bytes) => Buffer.from(bytes));
      sizes.forEach((bytes) => void random(bytes));
      expect(given.map((bytes) => bytes.length)).toEqual(sizes);
      expect(given).toEqual(copies);
      const places = given.map((bytes) => [bytes.buffer, bytes.byteOffset, bytes.byteOffset + bytes.length] as const);
      for (const [at, [buffer, start, end]] of places.entries()) {
        for (const [otherBuffer, otherStart, otherEnd] of places.slice(at + 1)) {
          expect(buffer === otherBuffer && start < otherEnd && otherStart < end).toBe(false);
        }
      }
    }),
  );
});
