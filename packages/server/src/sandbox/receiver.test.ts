import { randomBytes } from "node:crypto";
import { createServer } from "node:net";
import type { ReceivedIpn, ReceiverOptions } from "@paybell/partner";
import { testDelivery } from "@paybell/partner/testing";
import { Agent, fetch } from "undici";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../../test/support/temporary.ts";
import { type FailedDelivery, type RefusedDelivery, type SandboxReceiver, startReceiver } from "./receiver.ts";

const key = () => randomBytes(32).toString("base64");
const newKeys = (): ReceiverOptions => ({ encryptionKey: key(), signingKey: key(), webhookSecret: `whsec_${key()}` });

describe("the sandbox partner's receiver", () => {
  const keys = newKeys();
  let home = "";
  let started: SandboxReceiver;
  let agent: Agent;
  let received: [received: ReceivedIpn, path: string][];
  let refused: RefusedDelivery[];
  let failed: FailedDelivery[];

  beforeEach(async () => {
    home = temporaryFolder();
    [received, refused, failed] = [[], [], []];
    started = await startReceiver({
      home,
      keys,
      onIpn: (ipn, path) => {
        if (ipn.ipn.merchantTransId === "unprintable") throw new Error("the terminal is gone");
        received.push([ipn, path]);
      },
      onRefused: (delivery) => refused.push(delivery),
      onFailed: (delivery) => failed.push(delivery),
    });
    agent = new Agent({ connect: { ca: started.ca } });
  });

  afterEach(async () => {
    await agent.close();
    await started.close();
  });

  async function post(delivery = testDelivery(keys, { kind: "card" }), path = ""): Promise<number> {
    const { body, headers } = delivery;
    const response = await fetch(started.url + path, { method: "POST", body, headers, dispatcher: agent });
    await response.text();
    return response.status;
  }

  it("takes an IPN over HTTPS, opens and verifies it", async () => {
    expect(started.url).toMatch(/^https:\/\/127\.0\.0\.1:[0-9]+\/ipn$/);
    expect(await post()).toBe(204);
    expect(await post(testDelivery(keys, { kind: "settlement" }))).toBe(204);
    expect(received.map(([{ kind }, path]) => [kind, path])).toEqual([
      ["card", "/ipn"],
      ["settlement", "/ipn"],
    ]);
    expect(refused).toEqual([]);
  });

  it("refuses what is not authentic and says why, to its owner only", async () => {
    const { body, headers } = testDelivery({ ...keys, signingKey: key() }, { kind: "card" });
    const response = await fetch(started.url, { method: "POST", body, headers, dispatcher: agent });
    expect([response.status, await response.json()]).toEqual([400, { error: "not_authentic" }]);
    expect(refused).toEqual([{ reason: "signature", hint: expect.stringContaining("signingKey"), path: "/ipn" }]);
    expect(received).toEqual([]);
  });

  it("says so when showing an IPN failed, and has it delivered again", async () => {
    expect(await post(testDelivery(keys, { kind: "card", ipn: { merchantTransId: "unprintable" } }))).toBe(500);
    expect(refused).toEqual([expect.objectContaining({ reason: "error", hint: expect.stringContaining("is gone") })]);
  });

  it("at /ipn/flaky fails twice for each notification, then accepts", async () => {
    const statuses: Record<string, number[]> = {};
    for (const attempt of [1, 2, 3]) {
      for (const notificationId of ["a", "b"]) {
        const delivery = testDelivery(keys, { kind: "card" }, { notificationId, attempt });
        statuses[notificationId] = [...(statuses[notificationId] ?? []), await post(delivery, "/flaky")];
      }
    }
    expect(statuses).toEqual({ a: [503, 503, 204], b: [503, 503, 204] });
    expect(failed[0]).toEqual({ status: 503, notificationId: "a", attempt: "1", path: "/ipn/flaky" });
    expect(received.map(([{ notificationId }]) => notificationId)).toEqual(["a", "b"]);
  });

  it("at /ipn/down always answers 503", async () => {
    for (let attempt = 1; attempt <= 4; attempt += 1) expect(await post(undefined, "/down")).toBe(503);
    expect(failed).toHaveLength(4);
  });

  it("answers 404 elsewhere", async () => {
    expect(await post(undefined, "/elsewhere")).toBe(404);
  });

  it("uses other keys from the moment they are changed", async () => {
    const next: ReceiverOptions = { ...newKeys(), cipher: "jwe", signing: { mode: "whole" } };
    started.changeKeys(next);
    expect(await post()).toBe(400);
    expect(await post(testDelivery(next, { kind: "card" }))).toBe(204);
  });

  it("closes although a client keeps its connection open, and frees its port", async () => {
    expect(await post()).toBe(204);
    await started.close();
    const port = Number(new URL(started.url).port);
    const again = await startReceiver({ home, keys, port, onIpn: () => undefined, onRefused: () => undefined });
    expect([again.url, again.ca]).toEqual([started.url, started.ca]);
    started = again;
  });

  it("rejects when its port is taken", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => other.once("listening", resolve));
    const { port } = other.address() as { port: number };
    const start = startReceiver({ home, keys, port, onIpn: () => undefined, onRefused: () => undefined });
    await expect(start).rejects.toMatchObject({ code: "EADDRINUSE", port });
    await new Promise((resolve) => other.close(resolve));
  });
});
