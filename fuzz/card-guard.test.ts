import { createHash, randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { holdsCardNumber } from "../packages/server/src/guards/card-number.ts";

/** The check digit after 14 digits. */
function luhnCheckDigit(digits: string): string {
  let sum = 0;
  for (let at = 0; at < 14; at += 1) {
    const digit = digits.charCodeAt(at) - 48;
    sum += at % 2 === 0 ? digit : digit < 5 ? digit * 2 : digit * 2 - 9;
  }
  return ((10 - (sum % 10)) % 10).toString();
}

function countHits(count: number, make: () => string): number {
  let hits = 0;
  for (let drawn = 0; drawn < count; drawn += 1) if (holdsCardNumber(make())) hits += 1;
  return hits;
}

const below = (limit: number) => Math.floor(Math.random() * limit);

describe("the card guard lets pass", () => {
  test("250,000 random UUIDs, with dashes, without, and among others", () => {
    expect(countHits(100_000, () => randomUUID())).toBe(0);
    expect(countHits(100_000, () => randomUUID().replaceAll("-", ""))).toBe(0);
    expect(countHits(25_000, () => JSON.stringify({ reqId: randomUUID(), orders: [randomUUID()] }))).toBe(0);
    expect(countHits(25_000, () => `${randomUUID()} ${randomUUID().toUpperCase()}`)).toBe(0);
  });

  test("250,000 digests of SHA-256", () => {
    // Not random: one of 10,000,000 looks like a track.
    let hashed = 0;
    expect(countHits(250_000, () => createHash("sha256").update(String(hashed++)).digest("hex"))).toBe(0);
  });

  test("250,000 timestamps: every year of them", () => {
    const moment = () => new Date(below(Date.UTC(2099, 11, 31))).toISOString();
    const compact = (iso: string) => iso.slice(0, 4) + iso.slice(5, 7) + iso.slice(8, 10) + iso.slice(11, 13);
    const digits = (iso: string) => compact(iso) + iso.slice(14, 16) + iso.slice(17, 19);
    expect(digits("2026-11-21T01:02:03.456Z")).toBe("20261121010203");
    expect(countHits(125_000, () => digits(moment()))).toBe(0);
    expect(countHits(62_500, () => digits(moment()) + below(1_000).toString().padStart(3, "0"))).toBe(0);
    expect(countHits(62_500, () => moment().replace("T", " "))).toBe(0);
  });

  test("250,000 epoch milliseconds, until the year 2096 makes them begin with 4", () => {
    const limit = 4e12;
    expect(countHits(250_000, () => below(limit).toString())).toBe(0);
  });

  test("250,000 IMEIs of the bodies that give them out, though each passes Luhn", () => {
    // 15 digits are a card number only as 34… and 37…, and no reporting body has those.
    const bodies = ["01", "30", "33", "35", "44", "45", "49", "50", "51", "52", "53", "54", "86", "91", "98", "99"];
    const imei = () => {
      const digits = `${bodies[below(bodies.length)]}${below(1e12).toString().padStart(12, "0")}`;
      return digits + luhnCheckDigit(digits);
    };
    expect(luhnCheckDigit("49015420323751")).toBe("8");
    expect(countHits(250_000, imei)).toBe(0);
  });
});
