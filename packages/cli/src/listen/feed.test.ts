import type { Self } from "@paybell/partner/client";
import { expect, test } from "vitest";
import type { ClientSettings } from "../client/connection.ts";
import { openerFor } from "./feed.ts";

test("an option overrides the setting that the service has", () => {
  const [encryptionKey, signingKey, webhookSecret] = [1, 2, 3].map((byte) => Buffer.alloc(32, byte).toString("base64"));
  const keys = { encryptionKey, signingKey, webhookSecret: `whsec_${webhookSecret}` };
  const self = { settings: { cipher: "aes-256-gcm", signing: { mode: "whole" } } } as unknown as Self;
  const opening = (credentials: object) => openerFor({ credentials } as ClientSettings, self);
  expect(opening(keys)).toBeTypeOf("function");
  expect(() => opening({ ...keys, cipher: "rot13" })).toThrow(/rot13|cipher/);
  expect(opening({})).toBeUndefined();
});
