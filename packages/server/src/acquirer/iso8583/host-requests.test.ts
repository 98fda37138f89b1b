import { readFile } from "node:fs/promises";
import { afterEach, describe, expect, test } from "vitest";
import { systemClock } from "../../clock.ts";
import { NotSent } from "../acquirer.ts";
import { Till } from "../till.fixture.ts";
import { profile } from "./example-profile.fixture.ts";
import { hostRequestsOf } from "./host-requests.ts";
import { Iso8583Acquirer } from "./iso8583.ts";
import { answerTo, FakeHost, framing } from "./link/fake-host.fixture.ts";
import type { LinkEvent, LinkOptions } from "./link/link.ts";
import { Wire } from "./link/wire.ts";
import { layoutOf } from "./mapping.ts";
import { Codec, type IsoMessage } from "./message/codec.ts";
import type { Profile } from "./profile/schema.ts";
import { type SignOffStore, SignOffs } from "./sign-offs.ts";

const patient = { timeoutMs: 600_000, onLateAnswer: () => expect.fail("no late answer is due") };
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function hostsOf(count: number): Promise<readonly FakeHost[]> {
  const hosts = await Promise.all(Array.from({ length: count }, () => FakeHost.listen()));
  for (const host of hosts) closing.push(() => host.close());
  return hosts;
}

/** The sign-offs that the instances share. */
class Shared implements SignOffStore {
  readonly hosts = new Set<string>();
  isUsed = false;
  isAway = false;

  async read() {
    return new Set(this.hosts);
  }

  async note(host: string, isSignedOff: boolean): Promise<void> {
    if (this.isAway) throw new Error("the database is away");
    if (isSignedOff) this.hosts.add(host);
    else this.hosts.delete(host);
  }

  async isUsedByOthers() {
    return this.isUsed;
  }
}

async function connected(
  hosts: readonly FakeHost[],
  signOffs?: SignOffStore,
  network?: Partial<Profile["network"]>,
  standard: Profile["standard"] = "1987",
  noteAsked: LinkOptions["noteAsked"] | null = async () => undefined,
) {
  const events: LinkEvent[] = [];
  const acquirer = new Iso8583Acquirer({
    profile: { ...profile, standard, network: { ...profile.network, ...network } },
    hosts: hosts.map(({ port }) => ({ host: "127.0.0.1", port })),
    clock: systemClock,
    signOffs,
    onEvent: (event) => events.push(event),
    noteAsked: noteAsked ?? undefined,
    // However long a connection lasts, it is no good one here: after it comes the host whose turn it is.
    timings: { backOffMs: () => 1, stableMs: 600_000 },
  });
  closing.push(() => acquirer.close());
  expect(await acquirer.isUpWithin(600_000)).toBe(true);
  return { acquirer, events };
}

const ofHost = (mti: string, code: string): IsoMessage => {
  const asked = mti[1] === "8" && code !== "" ? [[mti[0] === "1" ? 24 : 70, code] as const] : [];
  return { mti, fields: new Map([[7, "1122061112"], [11, "000777"], ...asked]) };
};
const nameOf = ({ port }: FakeHost) => `127.0.0.1:${port}`;
const signOnsAt = ({ heard }: FakeHost) =>
  heard.filter(({ mti, fields }) => mti === "0800" && fields.get(70) === "001").length;

/** The host sends it. @returns field 39 of the answer */
async function asks(host: FakeHost, mti: string, code = ""): Promise<string | undefined> {
  const answerMti = `${mti.slice(0, 2)}${Number(mti[2]) + 1}${Number(mti[3]) & ~1}`;
  const answers = () => host.heard.filter((one) => one.mti === answerMti);
  const before = answers().length;
  host.send(ofHost(mti, code));
  await expect.poll(() => answers().length).toBe(before + 1);
  return answers().at(-1)?.fields.get(39);
}

describe("a host's own request", () => {
  test("that brings a key without a key exchange is refused, with an alert", async () => {
    const [host] = (await hostsOf(1)) as [FakeHost];
    const { acquirer, events } = await connected([host]);
    for (const code of ["101", "161"]) expect(await asks(host, "0800", code)).toBe("40");
    expect(events.filter(({ kind }) => kind === "key_refused")).toHaveLength(2);
    expect((await acquirer.ask(new Till().sale("tok_approve"), patient)).responseCode).toBe("00");
  });

  test("is answered as the profile says, and an advice or a cutover is reported", async () => {
    const [host] = (await hostsOf(1)) as [FakeHost];
    const hostRequests = hostRequestsOf(profile);
    const values = { ...hostRequests.values, "201": { means: "cutover", answer: "09" } } as const;
    const advices = { ...hostRequests.advices, "0620": null, "0520": "12" };
    const { events } = await connected([host], undefined, { hostRequests: { ...hostRequests, values, advices } });
    expect(await asks(host, "0420")).toBe("00");
    expect(await asks(host, "0421")).toBe("00");
    host.send(ofHost("0620", ""));
    expect(await asks(host, "0520")).toBe("12");
    expect(await asks(host, "0800", "201")).toBe("09");
    expect(await asks(host, "0800", "301")).toBe("00");
    expect(events.flatMap((event) => (event.kind === "asked" ? [[event.means, event.message.mti]] : []))).toEqual([
      ["advice", "0420"],
      ["advice", "0421"],
      ["advice", "0620"],
      ["advice", "0520"],
      ["cutover", "0800"],
      ["echo", "0800"],
    ]);
    expect(host.heard.filter(({ mti }) => mti === "0630")).toEqual([]);
  });

  test("is answered once it is kept, and refused if it cannot be", async () => {
    const [host] = (await hostsOf(1)) as [FakeHost];
    const asked: { mti: string; keep: () => void; fail: (error: Error) => void }[] = [];
    const { events } = await connected([host], undefined, {}, "1987", ({ message }) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      asked.push({ mti: message.mti, keep: resolve, fail: reject });
      return promise;
    });
    const answers = () =>
      host.heard.filter(({ mti }) => mti !== "0800").map(({ mti, fields }) => [mti, fields.get(39)]);
    for (const mti of ["0420", "0620"]) host.send(ofHost(mti, ""));
    await expect.poll(() => asked.map(({ mti }) => mti)).toEqual(["0420", "0620"]);
    expect(answers()).toEqual([]);
    asked[1]?.fail(new Error("the database is away"));
    await expect.poll(answers).toEqual([["0630", "96"]]);
    asked[0]?.keep();
    await expect.poll(answers).toEqual([
      ["0630", "96"],
      ["0430", "00"],
    ]);
    const detail = "what the host asked could not be stored: the database is away";
    expect(events).toContainEqual(expect.objectContaining({ kind: "ignored", detail }));
    expect(events.flatMap((event) => (event.kind === "asked" ? [event.message.mti] : []))).toEqual(["0420"]);
  });

  test("that is an advice is not answered where no event of it is kept: the host sends it again", async () => {
    const [host] = (await hostsOf(1)) as [FakeHost];
    const { events } = await connected([host], undefined, {}, "1987", null);
    host.send(ofHost("0420", ""));
    expect(await asks(host, "0800", "301")).toBe("00");
    expect(host.heard.filter(({ mti }) => mti === "0430")).toEqual([]);
    const detail = expect.stringMatching(/^an advice of the host is not answered/);
    expect(events).toContainEqual(expect.objectContaining({ kind: "ignored", detail }));
  });

  test("that nobody knows is refused as the profile says, and reported", async () => {
    const [host] = (await hostsOf(1)) as [FakeHost];
    const { acquirer, events } = await connected([host]);
    for (const code of ["888", "021", ""]) expect(await asks(host, "0800", code)).toBe("40");
    expect(events.flatMap((event) => (event.kind === "asked" ? [event.means] : []))).toEqual(
      Array.from({ length: 3 }, () => "unknown"),
    );
    await acquirer.close();
    const others = { ...profile.network.hostRequests, others: "12" };
    await connected([host], undefined, { hostRequests: others });
    expect(await asks(host, "0800", "888")).toBe("12");
  });

  test("of ISO 8583:1993 is known by its function code, without a word of it in the profile", async () => {
    const [host] = (await hostsOf(1)) as [FakeHost];
    const codec = new Codec(layoutOf({ ...profile, standard: "1993" }));
    host.wire = new Wire({ codec, framing, authentication: undefined });
    host.signOnCode = "800";
    host.answer = () => undefined;
    const { acquirer, events } = await connected([host], undefined, {}, "1993");
    expect(await asks(host, "1804", "831")).toBe("800");
    expect(await asks(host, "1804", "811")).toBe("115");
    expect(await asks(host, "1804", "821")).toBe("800");
    expect(await asks(host, "1804", "899")).toBe("115");
    expect(await asks(host, "1804", "802")).toBe("800");
    expect(await acquirer.away()).toMatchObject({ code: "acquirer_signed_off" });
    expect(await asks(host, "1804", "801")).toBe("800");
    expect(acquirer.away()).toBeUndefined();
    expect(events.flatMap((event) => (event.kind === "asked" ? [event.means] : []))).toEqual([
      ...["echo", "key", "cutover", "unknown", "signOff", "signOn"],
    ]);
  });

  test("to sign off stops every message until it signs on", async () => {
    const [host] = (await hostsOf(1)) as [FakeHost];
    const { acquirer } = await connected([host]);
    expect(acquirer.away()).toBeUndefined();
    expect(await asks(host, "0800", "002")).toBe("00");
    expect(await acquirer.away()).toEqual({
      code: "acquirer_signed_off",
      detail: `${nameOf(host)} signed off`,
    });
    expect(acquirer.health()).toMatchObject({ ok: false, isSignedOff: true });
    await expect(acquirer.ask(new Till().sale("tok_approve"), { ...patient, timeoutMs: 1 })).rejects.toBeInstanceOf(
      NotSent,
    );
    expect(host.sockets.size).toBe(1);
    expect(await asks(host, "0800", "001")).toBe("00");
    expect(acquirer.away()).toBeUndefined();
    expect((await acquirer.ask(new Till().sale("tok_approve"), patient)).responseCode).toBe("00");
  });

  test("to sign off makes the other host take over, once what is in flight is answered", async () => {
    const [first, second] = (await hostsOf(2)) as [FakeHost, FakeHost];
    const { acquirer } = await connected([first, second]);
    const asked = Promise.withResolvers<IsoMessage>();
    const answer = first.answer;
    first.answer = (request) => void asked.resolve(request);
    const sale = acquirer.ask(new Till().sale("tok_approve"), patient);
    const request = await asked.promise;
    expect(await asks(first, "0800", "002")).toBe("00");
    expect(second.sockets.size).toBe(0);
    const late = answer(request, [...first.sockets][0] as never);
    if (late !== undefined) first.send(late);
    expect((await sale).responseCode).toBe("00");
    expect(await acquirer.isUpWithin(600_000)).toBe(true);
    expect(acquirer.site()).toBe(nameOf(second));
    // The one that signed off is tried last, and then again.
    second.breakConnections();
    await second.hears("0800", 2);
    expect(await acquirer.isUpWithin(600_000)).toBe(true);
    expect([acquirer.site(), signOnsAt(first)]).toEqual([nameOf(second), 1]);
    await second.close();
    closing.splice(1, 1);
    await expect.poll(() => acquirer.site()).toBe(nameOf(first));
  });

  test("to sign off is forgotten if it signs on again before what is in flight is answered", async () => {
    const [first, second] = (await hostsOf(2)) as [FakeHost, FakeHost];
    const { acquirer } = await connected([first, second]);
    const answers: (() => void)[] = [];
    first.answer = (request) => void answers.push(() => first.send(answerTo(request, "00")));
    const sale = acquirer.ask(new Till().sale("tok_approve"), patient);
    await first.hears("0200");
    for (const code of ["002", "001"]) expect(await asks(first, "0800", code)).toBe("00");
    for (const answer of answers) answer();
    expect((await sale).responseCode).toBe("00");
    expect(await asks(first, "0800", "301")).toBe("00");
    expect([acquirer.site(), signOnsAt(first), second.heard]).toEqual([nameOf(first), 1, []]);
  });

  test("to sign off is known to all instances; a sign-on that it accepts from one is, too", async () => {
    const [host] = (await hostsOf(1)) as [FakeHost];
    const shared = new Shared();
    const [one, other] = [await connected([host], shared), await connected([host], shared)];
    const [, socket] = [...host.sockets];
    if (socket !== undefined) host.leaves(socket);
    expect(await asks(host, "0800", "002")).toBe("00");
    await other.acquirer.reread();
    for (const { acquirer } of [one, other])
      expect(await acquirer.away()).toMatchObject({ code: "acquirer_signed_off" });
    const late = await connected([host], shared);
    expect(late.acquirer.away()).toBeUndefined();
    for (const { acquirer } of [one, other]) {
      await acquirer.reread();
      expect(acquirer.away()).toBeUndefined();
    }
  });

  test("to sign off that cannot be stored is refused, and counts for this instance all the same", async () => {
    const [host, other] = (await hostsOf(2)) as [FakeHost, FakeHost];
    const shared = new Shared();
    const { acquirer } = await connected([host, other], shared);
    shared.isAway = true;
    expect(await asks(host, "0800", "002")).toBe("96");
    await expect.poll(() => acquirer.site()).toBe(nameOf(other));
  });
});

test("a sign-off counts, although a read of the database that began before it does not have it", async () => {
  const shared = new Shared();
  const { promise, resolve } = Promise.withResolvers<Set<string>>();
  shared.read = () => promise;
  const signOffs = new SignOffs(shared);
  const reread = signOffs.reread();
  await signOffs.note("host:1", true);
  resolve(new Set());
  await reread;
  expect(signOffs.has("host:1")).toBe(true);
});

test("the defaults are those of the documentation", async () => {
  const guide = await readFile(new URL("../../../../../docs/operator/acquirer.md", import.meta.url), "utf8");
  const [, asked = ""] = guide.split("## What the host asks");
  const [, json = ""] = asked.split(/```(?:json)?\n/);
  expect(hostRequestsOf(profile)).toEqual(JSON.parse(json));
});

test("the last instance signs off at the host, and no other: it would end their sessions", async () => {
  const [host] = (await hostsOf(1)) as [FakeHost];
  const shared = new Shared();
  const [one, other] = [await connected([host], shared), await connected([host], shared)];
  const signOffs = () => host.heard.filter(({ fields }) => fields.get(70) === "002");
  shared.isUsed = true;
  await one.acquirer.close();
  await expect.poll(() => host.sockets.size).toBe(1);
  expect(signOffs()).toHaveLength(0);
  shared.isUsed = false;
  await other.acquirer.close();
  await expect.poll(() => host.sockets.size).toBe(0);
  expect(signOffs()).toHaveLength(1);
});
