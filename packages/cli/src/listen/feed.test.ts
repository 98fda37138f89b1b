import type { Self } from "@paybell/partner/client";
import { expect, test } from "vitest";
import type { ClientSettings } from "../client/connection.ts";
import { Failure } from "../shell/failure.ts";
import { type Fed, Feed, type FeedEvents, type NotificationSource, openerFor } from "./feed.ts";

test("an option overrides the setting that the service has", () => {
  const [encryptionKey, signingKey, webhookSecret] = [1, 2, 3].map((byte) => Buffer.alloc(32, byte).toString("base64"));
  const keys = { encryptionKey, signingKey, webhookSecret: `whsec_${webhookSecret}` };
  const self = { settings: { cipher: "aes-256-gcm", signing: { mode: "whole" } } } as unknown as Self;
  const opening = (credentials: object) => openerFor({ credentials } as ClientSettings, self);
  expect(opening(keys)).toBeTypeOf("function");
  expect(() => opening({ ...keys, cipher: "rot13" })).toThrow(/rot13|cipher/);
  expect(opening({})).toBeUndefined();
});

test("a notification is given up only if the service does not store it any more, not while it is away", async () => {
  const answered = (status: number) => {
    const get = () => Promise.reject(new Failure("refused", { code: "x", status }));
    const feed = new Feed({ api: { get } } as unknown as NotificationSource, {} as FeedEvents);
    return feed.again({ notification: { id: "n" } } as unknown as Fed);
  };
  expect(await answered(404)).toBeUndefined();
  for (const status of [401, 409, 429, 503]) await expect(answered(status)).rejects.toThrow("refused");
});
