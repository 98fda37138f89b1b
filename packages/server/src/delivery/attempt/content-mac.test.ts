import { createHmac, createSecretKey } from "node:crypto";
import { expect, test } from "vitest";
import { idTimeMs, newId } from "../../ids.ts";
import { ContentMac, type FixedContent } from "./content-mac.ts";

const key = createSecretKey(Buffer.alloc(32, 7));
const sale: FixedContent = {
  partnerId: newId(),
  id: newId(),
  command: "SALE",
  callBackUrl: null,
  originalId: null,
  content: '{"kind":"card"}',
};
const originals: readonly Partial<FixedContent>[] = [
  {},
  { originalId: newId() },
  { originalId: newId() },
  { originalExternalId: "S-1" },
  { originalExternalId: "S-2" },
  { originalExternalId: sale.partnerId },
  { originalId: newId<"transaction">(), originalExternalId: "S-3" },
];
const contents: readonly FixedContent[] = originals.map((original) => ({ ...sale, ...original }));

test("a MAC is of one original only", () => {
  const macs = new ContentMac(key, () => undefined);
  for (const made of contents) {
    const mac = macs.of(made);
    expect(contents.filter((stored) => macs.isAsCommitted(stored, mac))).toEqual([made]);
  }
});

test("an original that is found by the switch's id later changes no MAC", () => {
  const macs = new ContentMac(key, () => undefined);
  const made = { ...sale, originalExternalId: "S-1" };
  expect(macs.isAsCommitted({ ...made, originalId: newId() }, macs.of(made))).toBe(true);
});

test("a MAC that was made before it covered the original is accepted, and is no part of a newer one", () => {
  const changed: string[] = [];
  const macs = new ContentMac(key, ({ id }) => void changed.push(id));
  const text = `${sale.partnerId}\n${sale.id}\nSALE\n\n${sale.content}`;
  const older = createHmac("sha256", key).update(text).digest().subarray(0, 16);
  expect(macs.isAsCommitted(sale, older)).toBe(true);
  expect(macs.isAsCommitted({ ...sale, content: "{}" }, older)).toBe(false);
  expect(macs.isAsCommitted(sale, macs.of(sale).subarray(1))).toBe(false);
  expect(macs.isAsCommitted(sale, Buffer.concat([Buffer.of(2), older]))).toBe(false);
  expect(macs.isAsCommitted(sale, Buffer.of(0))).toBe(false);
  expect(changed).toEqual(Array(4).fill(sale.id));
});

test("only a notification older than the time since when all have a MAC may be without one", () => {
  const macs = new ContentMac(key, () => undefined);
  const atMs = idTimeMs(sale.id);
  const isAccepted = [Number.POSITIVE_INFINITY, atMs + 1, atMs, atMs + 1].map((sinceMs) => {
    macs.requiredSince(sinceMs);
    return macs.isAsCommitted(sale, null);
  });
  expect(isAccepted).toEqual([true, true, false, false]);
});
