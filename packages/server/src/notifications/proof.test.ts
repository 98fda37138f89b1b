import { createPublicKey, createSecretKey, verify } from "node:crypto";
import { canonicalJson } from "@paybell/contract";
import { afterAll, expect, test } from "vitest";
import {
  insertAttempt,
  insertNotification,
  openBench,
  registerPartner,
} from "../store/notifications/notifications.fixture.ts";
import { ProofSigner } from "./proof.ts";

const bench = await openBench();
afterAll(() => bench.close());

test("a proof of delivery is verified with the public key only, and a modified one is detected", async () => {
  const partner = await registerPartner(bench.pool);
  const id = await insertNotification(bench.pool, partner.id, { state: "accepted" });
  await insertAttempt(bench.pool, partner.id, id, { attemptNo: 1 });
  const { proof, signature } = await bench.notifications.prove(id);
  expect(proof).toMatchObject({ id, state: "accepted", attempts: [{ httpStatus: 200 }] });
  const key = createPublicKey({ key: Buffer.from(signature.publicKey, "base64"), format: "der", type: "spki" });
  const isSigned = (what: unknown) =>
    verify(null, Buffer.from(canonicalJson(what)), key, Buffer.from(signature.value, "base64"));
  expect(isSigned(JSON.parse(JSON.stringify(proof)))).toBe(true);
  expect(isSigned({ ...proof, state: "parked" })).toBe(false);
});

test("every instance with the same master key signs identically", () => {
  const seed = createSecretKey(Buffer.alloc(32, 7));
  expect(new ProofSigner(seed).publicKey).toBe(new ProofSigner(seed).publicKey);
  expect(new ProofSigner(seed).publicKey).not.toBe(new ProofSigner(createSecretKey(Buffer.alloc(32, 8))).publicKey);
});
