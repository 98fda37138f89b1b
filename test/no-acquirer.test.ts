import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { reportedSale, sale } from "./support/commands.ts";
import { createDatabase } from "./support/database.ts";
import { spawnInstance } from "./support/instance.ts";
import { callHttp, serviceClient } from "./support/service.ts";

test("without PAYBELL_ACQUIRER serve refuses commands, accepts reports, and says which acquirer it has", async () => {
  const database = await createDatabase();
  const masterKey = randomBytes(32);
  const env = { PAYBELL_ACQUIRER: "" };
  const instance = await spawnInstance({ databaseUrl: database.url, masterKey, callsLoopback: true, env });
  try {
    const client = serviceClient(instance.baseUrl);
    const partner = await client.register();
    expect(await partner.run(sale())).toMatchObject({ status: 503, body: { code: "no_acquirer" } });
    await client.report([reportedSale(partner.id)]);
    const [delivery] = await partner.server.next(1);
    expect(delivery?.received?.headers.command).toBe("SALE");
    const { status, body } = await callHttp(instance.baseUrl, "GET", "/readyz", {});
    expect(status).toBe(200);
    await partner.server.close();
    expect(body).toMatchObject({ checks: { acquirer: { ok: true, detail: expect.stringMatching(/^none: /) } } });
  } finally {
    instance.signal("SIGTERM");
    await instance.exited;
    await database.drop();
  }
});
