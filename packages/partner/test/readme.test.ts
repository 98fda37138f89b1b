import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { testDelivery } from "@paybell/partner/testing";
import { expect, it } from "vitest";

const home = new URL("..", import.meta.url);

it("the README's example runs and receives an IPN", async () => {
  const readme = readFileSync(new URL("README.md", home), "utf8");
  const example = /```js\n(.*?)```/s.exec(readme)?.[1] ?? "";
  const key = () => randomBytes(32).toString("base64");
  const options = { encryptionKey: key(), signingKey: key(), webhookSecret: `whsec_${key()}` };
  const child = spawn(process.execPath, ["--conditions=paybell-source", "--input-type=module", "--eval", example], {
    cwd: home,
    env: {
      PORT: "0",
      PAYBELL_ENCRYPTION_KEY: options.encryptionKey,
      PAYBELL_SIGNING_KEY: options.signingKey,
      PAYBELL_WEBHOOK_SECRET: options.webhookSecret,
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const lines = createInterface(child.stdout);
    const [listening] = (await once(lines, "line")) as [string];
    const received = once(lines, "line");
    const { body, headers } = testDelivery(options, { kind: "card", ipn: { id: "t-1" } });
    const url = `http://127.0.0.1:${/[0-9]+$/.exec(listening)?.[0]}/ipn`;
    expect((await fetch(url, { method: "POST", body, headers })).status).toBe(204);
    expect(await received).toEqual(["card t-1 SUCCESS"]);
  } finally {
    child.kill();
    await once(child, "exit");
  }
});
