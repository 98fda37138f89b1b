import { randomBytes } from "node:crypto";
import type { ReceiverOptions } from "@paybell/partner";
import { afterEach, expect, it } from "vitest";
import { certify } from "../../packages/partner/src/certify/certify.ts";
import { sealerKeys } from "../../packages/partner/src/certify/notification.ts";
import { closeServers, starts } from "../../packages/partner/src/frameworks.fixture.ts";

const key = () => randomBytes(32).toString("base64");
const keys: ReceiverOptions = { encryptionKey: key(), signingKey: key(), webhookSecret: `whsec_${key()}` };
const nothing = () => undefined;

afterEach(closeServers);

it.each(Object.entries(starts))("an endpoint made with the library passes: %s", async (_name, start) => {
  const url = new URL((await start(keys, nothing, nothing)).url);
  const { passed, results } = await certify({
    ...{ url, keys: sealerKeys(keys), run: "0badc0de", nowMs: Date.now },
    limits: { pieces: 4, gapMs: 10 },
  });
  const failed = results
    .filter(({ verdict }) => verdict !== "passed")
    .map(({ code, finding }) => [code, finding?.code]);
  expect([passed, failed]).toEqual([true, []]);
});
