import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { freePort } from "../../../../../../test/support/ports.ts";
import { systemClock } from "../../../clock.ts";
import { NoAnswer, NotSent } from "../../acquirer.ts";
import { approvalOf } from "../mapping.ts";
import { isoMessage } from "../message/codec.fixture.ts";
import type { IsoMessage } from "../message/codec.ts";
import { IsoFormatError } from "../message/element.ts";
import type { NetworkName } from "../profile/schema.ts";
import { SignOffs } from "../sign-offs.ts";
import { Exchanges } from "./exchanges.ts";
import { answerTo, FakeHost, framing, wire } from "./fake-host.fixture.ts";
import { doubledFrom, Link, type LinkEvent, type LinkKeys, type LinkOptions } from "./link.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  vi.useRealTimers();
});

/** The clock stops until the test advances it, so that timeouts do not depend on this machine's speed. */
function stopTime(): void {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance"] });
}

async function host(): Promise<FakeHost> {
  const one = await FakeHost.listen();
  closing.push(() => one.close());
  return one;
}

const network = (code: string): IsoMessage => isoMessage("0800", { 11: "000001", 70: code });
const request = (traceNo: string): IsoMessage => isoMessage("0200", { 7: "1122061112", 11: traceNo, 41: "T0000001" });

interface Watched {
  readonly link: Link;
  readonly events: LinkEvent[];
  /** Resolves with the next event of a kind. */
  next(kind: LinkEvent["kind"]): Promise<LinkEvent>;
}

const codes: Readonly<Partial<Record<NetworkName, string>>> = { signOn: "001", echo: "301", signOff: "002" };

type OpenOptions = [timings?: Partial<LinkOptions["timings"]>, network?: Partial<LinkOptions["network"]>];

function open(hosts: readonly { readonly port: number }[], ...[options = {}, change = {}]: OpenOptions): Watched {
  const events: LinkEvent[] = [];
  const waiting: { kind: LinkEvent["kind"]; resolve: (event: LinkEvent) => void }[] = [];
  const link = new Link({
    hosts: hosts.map(({ port }) => ({ host: "127.0.0.1", port })),
    wire,
    framing,
    tls: undefined,
    network: {
      message: (kind) => (codes[kind] === undefined ? undefined : network(codes[kind])),
      codeOf: ({ fields }) => fields.get(39) ?? "",
      read: (asked) => (asked.mti === "0800" ? { means: "other", answer: approvalOf(asked) } : undefined),
      ...change,
    },
    exchanges: new Exchanges(systemClock),
    signOffs: new SignOffs(undefined),
    matchKeyOf: ({ mti, fields }) =>
      [mti.slice(0, 2), Math.floor(Number(mti[2]) / 2), fields.get(7), fields.get(11), fields.get(41)].join("|"),
    timings: {
      connectTimeoutMs: 600_000,
      networkTimeoutMs: 600_000,
      echoEveryMs: 600_000,
      backOffMs: () => 1,
      stableMs: 600_000,
      ...options,
    },
    clock: systemClock,
    onEvent(event) {
      events.push(event);
      for (const one of waiting.filter(({ kind }) => kind === event.kind)) one.resolve(event);
    },
  });
  link.start();
  closing.push(() => link.close());
  const next = (kind: LinkEvent["kind"]) => new Promise<LinkEvent>((resolve) => waiting.push({ kind, resolve }));
  return { link, events, next };
}

/** The link to a host of its own, which is up. */
async function opened(...how: OpenOptions): Promise<Watched & { readonly one: FakeHost }> {
  const one = await host();
  const watched = open([one], ...how);
  expect(await watched.link.isUpWithin(600_000)).toBe(true);
  return { one, ...watched };
}

const unwritable = () => {
  throw new IsoFormatError("traceNo has more than the 4 digits of its place");
};

/** Keys that come over the link; every one is taken. */
const keysThat = (change: Partial<LinkKeys>): LinkKeys => ({
  requestEveryMs: null,
  begin: async () => undefined,
  brings: ({ fields }) => fields.get(70) === "101",
  take: async (_, approve) => void approve?.(),
  ask: async (request) => void (await request()),
  asking: undefined,
  ...change,
});

/** Longer than a test may take: nothing here ends by this time-out. */
const patient = { timeoutMs: 600_000, onLateAnswer: () => expect.fail("no late answer is due") };

describe("the link to a host", () => {
  test("signs on before it is ready, and signs off when it is closed", async () => {
    const one = await host();
    const { link } = open([one]);
    expect(await link.isUpWithin(600_000)).toBe(true);
    expect(one.heard.map(({ fields }) => fields.get(70))).toEqual(["001"]);
    expect(link.state().detail).toMatch(/^signed on at 127\.0\.0\.1:\d+ for \d+ s$/);
    expect(link.state().silentMs).toBeGreaterThanOrEqual(0);
    await link.close();
    await one.hears("0800", 2);
    expect(one.heard.at(-1)?.fields.get(70)).toBe("002");
  });

  test("gives each answer to its request, in any order", async () => {
    const one = await host();
    const asked: IsoMessage[] = [];
    one.answer = (message, socket) => {
      asked.push(message);
      if (asked.length === 50) {
        for (const held of asked.reverse()) {
          socket.write(wire.write(answerTo(held, held.fields.get(11)?.slice(-2) ?? "")));
        }
      }
      return undefined;
    };
    const { link } = open([one]);
    await link.isUpWithin(600_000);
    const traceNos = Array.from({ length: 50 }, (_, at) => at.toString().padStart(6, "0"));
    const answers = await Promise.all(traceNos.map((traceNo) => link.request(request(traceNo), patient)));
    expect(answers.map(({ fields }) => fields.get(39))).toEqual(traceNos.map((traceNo) => traceNo.slice(-2)));
  });

  test("uses the next host if one cannot be reached, or refuses the sign-on", async () => {
    const port = await freePort();
    const refusing = await host();
    refusing.signOnCode = "91";
    const silent = await host();
    silent.signOnCode = undefined;
    const good = await host();
    stopTime();
    const { link, events } = open([{ port }, refusing, silent, good], { networkTimeoutMs: 200 });
    await silent.hears("0800");
    vi.advanceTimersByTime(200);
    expect(await link.isUpWithin(600_000)).toBe(true);
    expect(link.state().detail).toContain(`127.0.0.1:${good.port}`);
    const reasons = events.flatMap((event) => (event.kind === "unusable" ? [event.detail] : []));
    expect(reasons).toEqual([
      expect.stringContaining("ECONNREFUSED"),
      "the host refused the sign-on with 91",
      "The host did not answer within 200 ms",
    ]);
  });

  test("uses the next host if one ends each connection after its sign-on", async () => {
    const [ending, good] = [await host(), await host()];
    const { link, events } = open([ending, good]);
    const isSignedOnAt = (port: number) =>
      events.some(({ kind, host: at }) => kind === "up" && at.endsWith(`:${port}`));
    for (const { port } of [ending, good]) {
      await expect.poll(() => isSignedOnAt(port)).toBe(true);
      ending.breakConnections();
    }
    expect(link.host).toBe(`127.0.0.1:${good.port}`);
  });

  test("waits after each round through its hosts, and says which round it was", async () => {
    const [refusing, other] = [await host(), await host()];
    refusing.signOnCode = "91";
    other.signOnCode = "91";
    const rounds: number[] = [];
    const { promise: waitsLong, resolve } = Promise.withResolvers<void>();
    const backOffMs = (round: number) => {
      if (rounds.push(round) === 3) resolve();
      return rounds.length < 3 ? 1 : 600_000;
    };
    open([refusing, other], { backOffMs });
    await waitsLong;
    expect(rounds).toEqual([0, 1, 2]);
    expect([refusing, other].map(({ heard }) => heard.length)).toEqual([3, 3]);
  });

  test.each([
    [0, [800, 1_600, 2_400, 2_400]],
    [0.5, [1_000, 2_000, 3_000, 3_000]],
  ])("a wait is doubled up to the longest one, a fifth more or less (%d)", (random, waitsMs) => {
    const drawn = vi.spyOn(Math, "random").mockReturnValue(random);
    onTestFinished(() => drawn.mockRestore());
    expect([0, 1, 2, 60].map(doubledFrom(1_000, 3_000))).toEqual(waitsMs);
  });

  test("rejects with NotSent while no host is connected, and says why", async () => {
    const refusing = await host();
    refusing.signOnCode = "91";
    const { link, next } = open([refusing]);
    await next("unusable");
    expect(await link.isUpWithin(5)).toBe(false);
    const rejection = link.request(request("000001"), patient);
    await expect(rejection).rejects.toBeInstanceOf(NotSent);
    await expect(rejection).rejects.toThrow("refused the sign-on with 91");
  });

  test("counts the time since it was up last, however often it tries to connect", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const refusing = await host();
    refusing.signOnCode = "91";
    const { link, next } = open([refusing]);
    await next("unusable");
    vi.advanceTimersByTime(5_000);
    await next("unusable");
    expect(link.downMs).toBe(5_000);
  });

  test("rejects with NoAnswer what may have arrived before the connection broke, and connects again", async () => {
    const { one, link, next } = await opened();
    one.answer = () => undefined;
    const asked = link.request(request("000001"), patient);
    const broken = expect(asked).rejects.toBeInstanceOf(NoAnswer);
    await one.hears("0200");
    const up = next("up");
    one.breakConnections();
    await broken;
    await up;
    one.answer = (message) => answerTo(message, "00");
    expect((await link.request(request("000002"), patient)).fields.get(39)).toBe("00");
  });

  test("hands over, once, an answer that comes late over the next connection", async () => {
    const { one, link, next } = await opened();
    one.answer = () => undefined;
    const late: string[] = [];
    const onLateAnswer = ({ fields }: IsoMessage) => late.push(fields.get(39) ?? "");
    const asked = link.request(request("000001"), { ...patient, onLateAnswer });
    await one.hears("0200");
    const up = next("up");
    one.breakConnections();
    await expect(asked).rejects.toBeInstanceOf(NoAnswer);
    await up;
    const ignored = next("ignored");
    one.send(answerTo(request("000001"), "00"));
    one.send(answerTo(request("000001"), "00"));
    expect(await ignored).toMatchObject({ detail: "it was answered so before" });
    expect(late).toEqual(["00"]);
  });

  test("gives the first answer of a repeat to the request that still waits for it", async () => {
    const { one, link } = await opened();
    one.answer = () => undefined;
    const late: string[] = [];
    const onLateAnswer = ({ fields }: IsoMessage) => late.push(fields.get(39) ?? "");
    await expect(link.request(request("000001"), { timeoutMs: 5, onLateAnswer })).rejects.toBeInstanceOf(NoAnswer);
    const again = link.request({ ...request("000001"), mti: "0201" }, patient);
    await one.hears("0201");
    one.send(answerTo(request("000001"), "00"));
    expect((await again).fields.get(39)).toBe("00");
    expect(late).toEqual([]);
  });

  test("asks a silent host for a sign of life, and leaves one that gives none", async () => {
    const dead = await host();
    dead.answersEchoes = false;
    stopTime();
    const { link, next, events } = open([dead], { echoEveryMs: 1_000, networkTimeoutMs: 2_000 });
    await link.isUpWithin(600_000);
    const down = next("down");
    vi.advanceTimersByTime(1_500);
    await dead.hears("0800", 2);
    const up = next("up");
    vi.advanceTimersByTime(2_000);
    expect(await down).toMatchObject({ detail: "the host did not answer an echo" });
    dead.answersEchoes = true;
    // The wait before it connects again.
    await vi.advanceTimersByTimeAsync(10);
    await up;
    // It is looked at twice in that time: one that falls silent between two looks is asked at the third.
    for (const [heard, ms] of [
      [4, 1_500],
      [5, 1_000],
    ] as const) {
      const answered = next("received");
      await vi.advanceTimersByTimeAsync(ms);
      await dead.hears("0800", heard);
      await answered;
    }
    expect(dead.heard.map(({ fields }) => fields.get(70))).toEqual(["001", "301", "001", "301", "301"]);
    expect(events.filter(({ kind }) => kind === "down")).toHaveLength(1);
  });

  test("answers a host's echo, and no other request", async () => {
    const { one, next } = await opened();
    one.send(network("301"));
    await one.hears("0810");
    expect(one.heard.at(-1)?.fields.get(39)).toBe("00");
    const ignored = next("ignored");
    one.send({ mti: "0200", fields: new Map([[11, "000009"]]) });
    expect(await ignored).toMatchObject({ detail: "the host sent a request that is not supported" });
  });

  test("ignores a message that cannot be read, and keeps the connection", async () => {
    const { one, link, next } = await opened();
    const ignored = next("ignored");
    for (const socket of one.sockets) socket.write(Buffer.from("00096000010000deadbeef", "hex"));
    expect(await ignored).toMatchObject({ detail: "the message type must hold digits only" });
    expect((await link.request(request("000001"), patient)).fields.get(39)).toBe("00");
  });

  test("leaves a connection whose bytes are no messages at all", async () => {
    const { one, next } = await opened();
    const up = next("up");
    const down = next("down");
    for (const socket of one.sockets) socket.write(Buffer.from("0002ffff", "hex"));
    expect(await down).toMatchObject({ detail: "a message says that it has 2 bytes" });
    await up;
  });

  test("ends a sign-on whose connection breaks, and connects again", async () => {
    const one = await host();
    one.signOnCode = undefined;
    const { link, next } = open([one]);
    await one.hears("0800");
    const unusable = next("unusable");
    one.signOnCode = "00";
    one.breakConnections();
    expect(await unusable).toMatchObject({ detail: expect.stringMatching(/closed|ECONNRESET/) });
    expect(await link.isUpWithin(600_000)).toBe(true);
  });

  test("leaves nothing open when it is closed in the middle of a sign-on", async () => {
    const silent = await host();
    silent.signOnCode = undefined;
    const { link, events } = open([silent], { networkTimeoutMs: 60_000 });
    await silent.hears("0800");
    await link.close();
    expect(events.filter(({ kind }) => kind === "up" || kind === "unusable")).toEqual([]);
  });

  test("leaves a host whose echo or sign-off cannot be written, and goes on", async () => {
    const one = await host();
    stopTime();
    const { link, next } = open(
      [one],
      { echoEveryMs: 1_000 },
      { message: (kind) => (kind === "signOn" ? network("001") : unwritable()) },
    );
    await link.isUpWithin(600_000);
    const down = next("down");
    const up = next("up");
    vi.advanceTimersByTime(1_500);
    expect(await down).toMatchObject({ detail: expect.stringMatching(/^no echo could be sent: traceNo has more/) });
    await vi.advanceTimersByTimeAsync(10);
    await up;
    const written = next("unwritable");
    await link.close();
    expect(await written).toMatchObject({ detail: expect.stringMatching(/^traceNo has more/) });
    expect(link.isUp).toBe(false);
    await expect.poll(() => one.sockets.size).toBe(0);
  });

  test("goes on if the answer to a host's key cannot be written", async () => {
    const { one, link, next } = await opened({}, { keys: keysThat({}) });
    const written = next("unwritable");
    // The fields of a message's answer are its own, and text is accepted unchanged when it is read.
    const key = { mti: "0800", fields: new Map([...network("101").fields, [48, "A"]]) };
    const frame = wire.write(key);
    frame[frame.lastIndexOf("A")] = 0;
    for (const socket of one.sockets) socket.write(frame);
    expect(await written).toMatchObject({ detail: "field 48 must hold printable ASCII characters only" });
    expect((await link.request(request("000001"), patient)).fields.get(39)).toBe("00");
  });

  test("leaves a host that refuses a new key, when it is due and after the sign-on", async () => {
    const one = await host();
    stopTime();
    const answers = ["00"];
    const { link, next } = open(
      [one],
      {},
      {
        keys: keysThat({ requestEveryMs: 1_000 }),
        message: (kind) => network(kind === "keyRequest" ? "161" : "001"),
        codeOf: (_, kind) => (kind === "signOn" ? "00" : (answers.shift() ?? "91")),
      },
    );
    await link.isUpWithin(600_000);
    const [refused, down, unusable] = [next("key_refused"), next("down"), next("unusable")];
    vi.advanceTimersByTime(1_000);
    const detail = "the host refused a new key with 91";
    expect(await refused).toMatchObject({ detail });
    expect(await down).toMatchObject({ detail: "no new key came" });
    expect(await unusable).toMatchObject({ detail });
  });

  test("leaves no connection open on which it could not begin", async () => {
    const one = await host();
    let begins = 0;
    const begin = async () => {
      begins += 1;
      if (begins === 1) throw new Error("the database is away");
    };
    const { link, next } = open([one], {}, { keys: keysThat({ begin }) });
    expect(await next("unusable")).toMatchObject({ detail: "the database is away" });
    expect(await link.isUpWithin(600_000)).toBe(true);
    await expect.poll(() => one.sockets.size).toBe(1);
  });

  test("leaves nothing open when it is closed while a key is read or taken up", async () => {
    for (const step of ["begin", "ask"] as const) {
      const one = await host();
      const reached = Promise.withResolvers<void>();
      const going = Promise.withResolvers<void>();
      const wait = async (request?: () => Promise<unknown>) => {
        await request?.();
        reached.resolve();
        await going.promise;
      };
      const message = (kind: NetworkName) => network(kind === "keyRequest" ? "161" : "001");
      const { link, events } = open([one], {}, { keys: keysThat({ [step]: wait }), message });
      await reached.promise;
      const ended = link.close();
      going.resolve();
      await ended;
      await expect.poll(() => one.sockets.size).toBe(0);
      expect(events.filter(({ kind }) => kind === "up" || kind === "unusable")).toEqual([]);
      expect(one.heard.map(({ fields }) => fields.get(70))).toEqual(step === "begin" ? [] : ["001", "161"]);
    }
  });

  test("rejects with NotSent what cannot be written, and what is asked after it was closed", async () => {
    const { one, link } = await opened();
    const unwritable = { mti: "0200", fields: new Map([[4, "no amount"]]) };
    await expect(link.request(unwritable, patient)).rejects.toBeInstanceOf(NotSent);
    await link.close();
    await expect(link.request(request("000001"), patient)).rejects.toBeInstanceOf(NotSent);
    expect(await link.isUpWithin(60_000)).toBe(false);
    expect(one.heard.filter(({ mti }) => mti === "0200")).toEqual([]);
  });

  test("rejects with NotSent while a host does not read from the connection", async () => {
    const { one, link } = await opened();
    for (const socket of one.sockets) socket.pause();
    const privateFields = Array.from({ length: 23 }, (_, at): [number, string] => [105 + at, "A".repeat(999)]);
    let refused: unknown;
    const outcomes: Promise<unknown>[] = [];
    for (let at = 0; refused === undefined && at < 100_000; at += 1) {
      const traceNo = at.toString().padStart(6, "0");
      const message: IsoMessage = { mti: "0200", fields: new Map([[11, traceNo], ...privateFields]) };
      const outcome = link.request(message, patient).catch((error: unknown) => {
        if (error instanceof NotSent) refused = error;
      });
      outcomes.push(outcome);
      if (at % 10 === 0) await Promise.race([outcome, new Promise((resolve) => setImmediate(resolve))]);
    }
    expect(refused).toBeInstanceOf(NotSent);
    one.breakConnections();
    await Promise.all(outcomes);
  });
});
