import type { Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { systemClock } from "../../../clock.ts";
import { type AcquirerAnswer, NoAnswer } from "../../acquirer.ts";
import { Till } from "../../till.fixture.ts";
import { profile } from "../example-profile.fixture.ts";
import { Iso8583Acquirer } from "../iso8583.ts";
import { answerTo, FakeHost } from "./fake-host.fixture.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function listening(): Promise<FakeHost> {
  const host = await FakeHost.listen();
  closing.push(() => host.close());
  return host;
}

/** A link of three connections to each host, once all are signed on at the first. */
async function connected(first: FakeHost, ...others: FakeHost[]) {
  const hosts = [first, ...others].map(({ port }) => ({ host: "127.0.0.1", port }));
  const network = { ...profile.network, connections: 3 };
  const acquirer = new Iso8583Acquirer({ profile: { ...profile, network }, hosts, clock: systemClock });
  closing.push(() => acquirer.close());
  await first.hears("0800", 3);
  await expect.poll(() => acquirer.health().detail).toMatch(/, over 3 of 3 connections$/);
  return acquirer;
}

const patient = { timeoutMs: 600_000, onLateAnswer: () => expect.fail("no late answer is due") };

describe("several connections to a host", () => {
  test("are each signed on, and used in turn", async () => {
    const host = await listening();
    const acquirer = await connected(host);
    const used: Socket[] = [];
    host.answer = (request, socket) => {
      used.push(socket);
      return answerTo(request, "00");
    };
    const till = new Till();
    for (let sales = 0; sales < 6; sales += 1) await acquirer.ask(till.sale("tok_approve"), patient);
    expect(new Set(used).size).toBe(3);
    expect(used.slice(3)).toEqual(used.slice(0, 3));
  });

  test("end alone: requests over the others are answered, and a late answer is known over any", async () => {
    const host = await listening();
    const acquirer = await connected(host);
    const asked: { readonly answer: ReturnType<typeof answerTo>; readonly socket: Socket }[] = [];
    const { promise: allCame, resolve } = Promise.withResolvers<void>();
    host.answer = (request, socket) => {
      asked.push({ answer: answerTo(request, "00"), socket });
      if (asked.length === 3) resolve();
      return undefined;
    };
    const till = new Till();
    const late = Promise.withResolvers<AcquirerAnswer>();
    const ask = () => acquirer.ask(till.sale("tok_approve"), { ...patient, onLateAnswer: late.resolve });
    const sales = [ask(), ask(), ask()];
    const ended = sales.map((sale) => sale.catch((error: unknown) => error));
    await allCame;
    const [broken, second, third] = asked;
    broken?.socket.destroy();
    for (const one of [second, third]) one?.socket.write(host.wire.write(one.answer));
    const answers = await Promise.all(ended);
    expect(answers.filter((answer) => answer instanceof NoAnswer)).toHaveLength(1);
    expect(answers.filter((answer) => !(answer instanceof Error))).toMatchObject([
      { responseCode: "00" },
      { responseCode: "00" },
    ]);
    if (broken !== undefined) second?.socket.write(host.wire.write(broken.answer));
    expect(await late.promise).toMatchObject({ responseCode: "00" });
  });

  test("send to one host at a time: the next one only when none is left at the first", async () => {
    const [first, second] = [await listening(), await listening()];
    const acquirer = await connected(first, second);
    const till = new Till();
    const [socket] = first.sockets;
    first.signOnCode = "91";
    socket?.destroy();
    await second.hears("0800");
    for (let sales = 0; sales < 6; sales += 1) {
      expect(await acquirer.ask(till.sale("tok_approve"), patient)).toMatchObject({ site: `127.0.0.1:${first.port}` });
    }
    expect(second.heard.filter(({ mti }) => mti === "0200")).toEqual([]);
    await first.close();
    closing.shift();
    await expect.poll(() => acquirer.site()).toBe(`127.0.0.1:${second.port}`);
    expect(await acquirer.ask(till.sale("tok_approve"), patient)).toMatchObject({ site: `127.0.0.1:${second.port}` });
  });
});
