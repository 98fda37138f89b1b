import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ServiceError } from "../errors.ts";
import { newId, nilId } from "../ids.ts";
import { readCursor, writeCursor } from "./cursor.ts";
import type { DatabaseHistory } from "./store.ts";

const cluster: DatabaseHistory = { systemIdentifier: 7_710_424_091_472_588_676n, timeline: 1 };
const asOfMs = Date.UTC(2026, 10, 21);
const cursor = { position: { xid: 4_711n, id: newId() }, asOfMs };

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof ServiceError) return error.code;
    throw error;
  }
  return "no error";
}

describe("the pull cursor", () => {
  test("is read as it was written, whatever its position", () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
        fc.uuid(),
        fc.integer({ min: 0, max: 2 ** 48 - 1 }),
        fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
        fc.integer({ min: 0, max: 2 ** 32 - 1 }),
        (xid, id, asOf, systemIdentifier, timeline) => {
          const written = { position: { xid, id }, asOfMs: asOf };
          const home = { systemIdentifier, timeline };
          expect(readCursor(writeCursor(written, home), { cluster: home, keptFromMs: 0 })).toEqual(written);
        },
      ),
    );
  });

  test("is opaque, and needs no escaping in a URL", () => {
    expect(writeCursor(cursor, cluster)).toMatch(/^[A-Za-z0-9_-]{64}$/);
    expect(writeCursor({ position: { xid: 1n, id: nilId }, asOfMs }, cluster)).toHaveLength(64);
  });

  test("is refused if a single character of it differs", () => {
    const text = writeCursor(cursor, cluster);
    fc.assert(
      fc.property(fc.nat({ max: text.length - 1 }), fc.constantFrom(..."ABCxyz019-_"), (at, character) => {
        fc.pre(text[at] !== character);
        const changed = text.slice(0, at) + character + text.slice(at + 1);
        expect(codeOf(() => readCursor(changed, { cluster, keptFromMs: 0 }))).toBe("invalid_cursor");
      }),
    );
  });

  test.each([
    "",
    "abc",
    newId(),
    "=".repeat(64),
    `${writeCursor(cursor, cluster)}=`,
    ` ${writeCursor(cursor, cluster)}`,
  ])("is refused when it is anything else: %j", (text) => {
    expect(codeOf(() => readCursor(text, { cluster, keptFromMs: 0 }))).toBe("invalid_cursor");
  });

  test("is refused by another database cluster, and by another timeline of the same one", () => {
    const text = writeCursor(cursor, cluster);
    const elsewhere = { ...cluster, systemIdentifier: cluster.systemIdentifier + 1n };
    const restored = { ...cluster, timeline: 2 };
    expect(codeOf(() => readCursor(text, { cluster: elsewhere, keptFromMs: 0 }))).toBe("cursor_from_another_history");
    expect(codeOf(() => readCursor(text, { cluster: restored, keptFromMs: 0 }))).toBe("cursor_from_another_history");
  });

  test("expires with the history that it refers to, not a millisecond before", () => {
    const text = writeCursor(cursor, cluster);
    expect(readCursor(text, { cluster, keptFromMs: asOfMs }).asOfMs).toBe(asOfMs);
    expect(codeOf(() => readCursor(text, { cluster, keptFromMs: asOfMs + 1 }))).toBe("cursor_expired");
  });
});
