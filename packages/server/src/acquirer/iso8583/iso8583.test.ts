import { afterEach, describe, expect, test, vi } from "vitest";
import { systemClock } from "../../clock.ts";
import { type AcquirerAnswer, NoAnswer, NotSent, OtherSite, type SentMessage } from "../acquirer.ts";
import { askUnanswered } from "../conformance.ts";
import { emptyTotals, Till } from "../till.fixture.ts";
import { profile as example, usualMac } from "./example-profile.fixture.ts";
import { Iso8583Acquirer, type Iso8583Options } from "./iso8583.ts";
import { answerTo, FakeHost } from "./link/fake-host.fixture.ts";
import type { LinkEvent } from "./link/link.ts";
import type { IsoMessage } from "./message/codec.ts";

const noAnswer = { responseCode: "", approveCode: "", refId: "", tc: "" };
const patient = { timeoutMs: 600_000, onLateAnswer: () => expect.fail("no late answer is due") };

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  vi.useRealTimers();
});

async function opened(timings: Iso8583Options["timings"] = {}, profile = example, earlierTimeoutMs?: number) {
  const host = await FakeHost.listen();
  const hosts = [{ host: "127.0.0.1", port: host.port }];
  const events: LinkEvent[] = [];
  const onEvent = (event: LinkEvent) => events.push(event);
  const earlier = earlierTimeoutMs === undefined ? {} : { earlierTimeoutMs };
  // As of a process that has run for a day.
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + 86_400_000 };
  const acquirer = new Iso8583Acquirer({ profile, hosts, clock, onEvent, timings, ...earlier });
  closing.push(
    () => host.close(),
    () => acquirer.close(),
  );
  return { acquirer, host, events };
}

describe("an acquirer over ISO 8583", () => {
  test("waits for a link that is not ready yet, and reports its state", async () => {
    const { acquirer } = await opened();
    expect(acquirer.health()).toEqual({ ok: false, detail: "not connected yet" });
    expect((await acquirer.ask(new Till().sale("tok_approve"), patient)).responseCode).toBe("00");
    expect(acquirer.health()).toMatchObject({ ok: true, detail: expect.stringMatching(/^signed on at/) });
  });

  test("connects again soon each time a line drops, if it was signed on for some seconds", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    // Without a new beginning the last wait would be that of the twentieth round: ten minutes.
    const { acquirer, host, events } = await opened({ backOffMs: (round) => 2 ** round });
    for (let drops = 1; drops <= 20; drops += 1) {
      expect(await acquirer.isUpWithin(600_000)).toBe(true);
      vi.advanceTimersByTime(6_000);
      host.breakConnections();
      await expect.poll(() => events.filter(({ kind }) => kind === "down")).toHaveLength(drops);
    }
    expect(await acquirer.isUpWithin(600_000)).toBe(true);
  });

  test("says where a message went, whether it is answered or not, and nothing if it did not leave", async () => {
    const { acquirer, host } = await opened();
    const sent: SentMessage[] = [];
    const options = { ...patient, onSent: (one: SentMessage) => void sent.push(one) };
    await acquirer.ask(new Till().sale("tok_approve"), options);
    expect(sent).toEqual([{ host: `127.0.0.1:${host.port}`, mti: "0200" }]);
    host.answer = (_, socket) => void socket.destroy();
    await expect(acquirer.ask(new Till().sale("tok_approve"), options)).rejects.toBeInstanceOf(NoAnswer);
    expect(sent).toHaveLength(2);
    expect(await acquirer.isUpWithin(600_000)).toBe(true);
    const thb = { ...new Till().sale("tok_approve"), currency: "THB" };
    await expect(acquirer.ask(thb, options)).rejects.toBeInstanceOf(NotSent);
    expect(sent).toHaveLength(2);
  });

  test("sends a message only to the host that is noted for it, and says which host answered", async () => {
    const { acquirer, host } = await opened();
    expect(acquirer.site()).toBeUndefined();
    const sale = new Till().sale("tok_approve");
    const site = `127.0.0.1:${host.port}`;
    for (const other of [null, "127.0.0.1:1"]) {
      const refused = acquirer.ask(sale, { ...patient, site: other });
      await expect(refused).rejects.toThrow(expect.objectContaining({ constructor: OtherSite, site }));
    }
    expect(acquirer.site()).toBe(site);
    expect(host.heard.filter(({ mti }) => mti === "0200")).toEqual([]);
    expect(await acquirer.ask(sale, { ...patient, site })).toMatchObject({ responseCode: "00", site });
  });

  test("sends no other request under the key of one that may be answered yet", async () => {
    const timings = { ...example.timings, reversalMarginMs: 600_000 };
    const { acquirer, host } = await opened({}, { ...example, timings });
    const till = new Till();
    const sale = till.sale("tok_approve");
    const other = { ...sale, transactionId: till.sale("tok_approve").transactionId };
    expect(await acquirer.isUpWithin(600_000)).toBe(true);
    host.answer = () => undefined;
    const late = Promise.withResolvers<string>();
    const onLateAnswer = (answer: AcquirerAnswer) => late.resolve(answer.responseCode);
    expect(await askUnanswered(acquirer, sale, { onLateAnswer })).toBeInstanceOf(NoAnswer);
    await host.hears("0200");
    await expect(acquirer.ask(other, { timeoutMs: 20, onLateAnswer })).rejects.toBeInstanceOf(NotSent);
    const [unanswered, ...others] = host.heard.filter(({ mti }) => mti === "0200");
    expect(others).toEqual([]);
    if (unanswered !== undefined) host.send(answerTo(unanswered, "00"));
    expect(await late.promise).toBe("00");
    host.answer = (request) => answerTo(request, "51");
    expect((await acquirer.ask(other, patient)).responseCode).toBe("51");
  });

  test("has the key of an unanswered request free again the time-out and the margin after it was sent", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    const timings = { ...example.timings, reversalMarginMs: 30_000 };
    const { acquirer, host } = await opened({}, { ...example, timings });
    const till = new Till();
    const sale = till.sale("tok_approve");
    const other = { ...sale, transactionId: till.sale("tok_approve").transactionId };
    expect(await acquirer.isUpWithin(600_000)).toBe(true);
    const startMs = performance.now();
    const sentAtMs: number[] = [];
    const onSent = () => void sentAtMs.push(performance.now() - startMs);
    host.answer = () => undefined;
    const unanswered = Promise.allSettled([acquirer.ask(sale, { ...patient, timeoutMs: 60_000, onSent })]);
    await host.hears("0200");
    vi.advanceTimersByTime(60_000);
    expect(await unanswered).toMatchObject([{ reason: { name: "NoAnswer" } }]);
    host.answer = (request) => answerTo(request, "00");
    const next = acquirer.ask(other, { ...patient, onSent });
    for (const ms of [29_999, 1]) {
      vi.advanceTimersByTime(ms);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await next).responseCode).toBe("00");
    expect(sentAtMs).toEqual([0, 90_000]);
  });

  test("begins its network messages' numbers again after 999999", async () => {
    const random = vi.spyOn(Math, "random").mockReturnValue(0.999_999_9);
    closing.push(async () => random.mockRestore());
    const { acquirer, host } = await opened({ backOffMs: () => 1 });
    expect(await acquirer.isUpWithin(600_000)).toBe(true);
    host.breakConnections();
    await host.hears("0800", 2);
    expect(host.heard.map(({ fields }) => fields.get(11))).toEqual(["999999", "000001"]);
  });

  test("sends nothing while a request of an earlier process may be booked, if answers do not tell requests apart", async () => {
    const timings = { ...example.timings, reversalMarginMs: 600_000 };
    const { acquirer } = await opened({}, { ...example, matchBy: [11], timings }, 1);
    expect(await acquirer.isUpWithin(600_000)).toBe(true);
    const asked = acquirer.ask(new Till().sale("tok_approve"), { ...patient, timeoutMs: 20 });
    await expect(asked).rejects.toThrow("could not tell its answer from that of another request");
  });

  test("waits for the link and for the answer in one time", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    const { acquirer, host } = await opened();
    host.signOnCode = undefined;
    host.answer = () => undefined;
    const asked = acquirer.ask(new Till().sale("tok_approve"), { ...patient, timeoutMs: 3_000 });
    await host.hears("0800");
    vi.advanceTimersByTime(2_000);
    host.send(answerTo(host.heard[0] as IsoMessage, "00"));
    await host.hears("0200");
    vi.advanceTimersByTime(3_000);
    await expect(asked).rejects.toThrow("did not answer within 1000 ms");
  });

  test("sends nothing whose time was over before it could leave: its Reversal may be answered by then", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const { acquirer, host } = await opened();
    const asked = acquirer.ask(new Till().sale("tok_approve"), patient);
    // The process stands still.
    vi.advanceTimersByTime(patient.timeoutMs);
    await expect(asked).rejects.toBeInstanceOf(NotSent);
    expect(host.heard.filter(({ mti }) => mti === "0200")).toEqual([]);
  });

  test("ends in NotSent if no host is ready in time, or the message cannot be written", async () => {
    const { acquirer, host, events } = await opened();
    const thb = { ...new Till().sale("tok_approve"), currency: "THB" };
    await expect(acquirer.ask(thb, patient)).rejects.toBeInstanceOf(NotSent);
    expect(events).toContainEqual({
      kind: "unwritable",
      host: "example-host",
      detail: "SALE: the host example-host takes no THB",
    });
    await host.close();
    closing.shift();
    const asked = acquirer.ask(new Till().sale("tok_approve"), { ...patient, timeoutMs: 20 });
    await expect(asked).rejects.toBeInstanceOf(NotSent);
  });

  test("says that an answer without a valid code has no outcome, and waits for one of what is repeated", async () => {
    const { acquirer, host } = await opened();
    const till = new Till();
    const sale = till.sale("tok_approve");
    for (const code of ["  ", "a1"]) {
      host.answer = (request) => answerTo(request, code);
      expect(await acquirer.ask(sale, patient)).toMatchObject({ responseCode: "", isAmbiguous: true });
      for (const repeated of [till.reversal(sale), till.settlement(emptyTotals), till.upload(sale, noAnswer)]) {
        await expect(acquirer.ask(repeated, patient), repeated.command).rejects.toBeInstanceOf(NoAnswer);
      }
    }
  });

  test.each([[[11]], [[11, 62]]])(
    "never has two requests at the host that share a key, matched by %j",
    async (matchBy) => {
      const { acquirer, host } = await opened({}, { ...example, matchBy });
      const sales = [new Till(1), new Till(2)].map((till) => till.sale("tok_approve"));
      const held: (() => void)[] = [];
      const mids: string[] = [];
      host.answer = (request, socket) => {
        mids.push(request.fields.get(41) ?? "");
        const code = request.fields.get(41) === "T0000001" ? "00" : "51";
        held.push(() => socket.write(host.wire.write(answerTo(request, code))));
        return undefined;
      };
      const asked = sales.map((sale) => acquirer.ask(sale, patient));
      await host.hears("0200");
      await expect(acquirer.ask(new Till(3).sale("tok_approve"), { ...patient, timeoutMs: 20 })).rejects.toThrow(
        NotSent,
      );
      expect(mids).toEqual(["T0000001"]);
      held[0]?.();
      expect(await asked[0]).toMatchObject({ responseCode: "00" });
      await host.hears("0200", 2);
      held[1]?.();
      expect(await asked[1]).toMatchObject({ responseCode: "51" });
      expect(mids).toEqual(["T0000001", "T0000002"]);
    },
  );

  test("refuses a card number as a token, whatever the profile allows", async () => {
    const host = await FakeHost.listen();
    closing.push(() => host.close());
    const hosts = [{ host: "127.0.0.1", port: host.port }];
    const acquirer = new Iso8583Acquirer({ profile: { ...example, cardTokens: ".*" }, hosts, clock: systemClock });
    closing.push(() => acquirer.close());
    expect(acquirer.refusesToken("4111111111111111")).toBe("A card number is not a token.");
    expect(acquirer.refusesToken("0004111111111111111")).toBe("A card number is not a token.");
    expect(acquirer.refusesToken("anything else")).toBeUndefined();
    // One in ten tokens of digits passes Luhn, but no scheme has numbers that begin with 9000.
    expect(acquirer.refusesToken("9000000000000001")).toBeUndefined();
    expect(acquirer.refusesToken("efd82024e46708826222782e632fa2f6")).toBeUndefined();
  });

  test("requires a key if the profile requires MACs", () => {
    const withMac = { ...example, mac: { ...usualMac, algorithm: "x9.19", keyExchange: null } as const };
    const open = (macKey?: Buffer) => new Iso8583Acquirer({ profile: withMac, hosts: [], macKey, clock: systemClock });
    expect(() => open()).toThrow("no MAC key is set");
    expect(() => open(Buffer.alloc(8))).toThrow("a key for X9.19 has 16 bytes");
  });
});
