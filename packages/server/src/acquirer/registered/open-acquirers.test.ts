import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { type Acquirer, NotSent, type UnmatchedAnswer } from "../acquirer.ts";
import { SimulatedAcquirer } from "../simulator/simulator.ts";
import { Till } from "../till.fixture.ts";
import { OpenAcquirers, type Replaced } from "./open-acquirers.ts";
import type { StoredAcquirer } from "./registry.ts";

const patient = { timeoutMs: 600_000, onLateAnswer: () => expect.fail("no late answer is due") };

let acquirers: OpenAcquirers | undefined;
/** Awaited before a registration is found. */
let finding: () => Promise<void> | void;
beforeEach(() => {
  finding = () => undefined;
});
afterEach(() => acquirers?.stop());

/** A link whose answers are held back until the test releases them. */
class Held extends SimulatedAcquirer {
  readonly goes = Promise.withResolvers<void>();
  isClosed = false;
  rereads = 0;
  unmatched: (answer: UnmatchedAnswer) => void = () => expect.fail("nobody listens to the link");

  onUnmatchedAnswer(listener: (answer: UnmatchedAnswer) => void): void {
    this.unmatched = listener;
  }

  async reread(): Promise<void> {
    this.rereads += 1;
  }

  override async ask(...asked: Parameters<Acquirer["ask"]>) {
    await this.goes.promise;
    if (this.isClosed) throw new NotSent("it was closed");
    return super.ask(...asked);
  }

  override close(): Promise<void> {
    this.isClosed = true;
    return super.close();
  }
}

async function opened(drainMs = 600_000) {
  const registered = new Map<string, string>();
  const links: Held[] = [];
  const ended: boolean[] = [];
  const troubles: unknown[] = [];
  const staysInUse: Replaced["staysInUse"][] = [];
  const all = new OpenAcquirers({
    ofSettings: new SimulatedAcquirer(),
    store: {
      versions: async () => new Map(registered),
      find: async (name) => {
        await finding();
        return { name, version: registered.get(name) } as StoredAcquirer;
      },
    },
    open({ version }, { ended: before, ...replaced }) {
      if (version === "wrong") throw new Error("the profile cannot be used");
      staysInUse.push(replaced.staysInUse);
      const link = new Held();
      const nth = links.push(link) - 1;
      ended[nth] = false;
      void before.then(() => {
        ended[nth] = true;
      });
      return link;
    },
    drainMs,
    onTrouble: (error) => troubles.push(error),
  });
  acquirers = all;
  await all.start();
  return { all, registered, links, ended, troubles, staysInUse };
}

test("a registration is taken up, changed and given up while the service runs", async () => {
  const { all, registered, links } = await opened();
  expect(all.names()).toEqual([""]);
  expect(all.has("first")).toBe(false);
  registered.set("first", "1");
  await all.refresh();
  expect(all.names()).toEqual(["", "first"]);
  links[0]?.goes.resolve();
  expect((await all.of("first").ask(new Till().sale("tok_approve"), patient)).responseCode).toBe("00");
  await all.refresh();
  expect(links).toHaveLength(1);
  registered.delete("first");
  await all.refresh();
  expect(all.names()).toEqual([""]);
  await expect(all.of("first").ask(new Till().sale("tok_approve"), patient)).rejects.toBeInstanceOf(NotSent);
  expect(all.has("")).toBe(true);
});

test("a registered link is looked at regularly, told to read what others stored, and its stray answers are passed on", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const { all, registered, links, troubles } = await opened();
  const strays: unknown[] = [];
  all.onUnmatchedAnswer((...given) => void strays.push(given));
  registered.set("first", "1");
  vi.advanceTimersByTime(5_000);
  await expect.poll(() => links[0]?.rereads).toBe(1);
  links[0]?.unmatched("a stray answer" as unknown as UnmatchedAnswer);
  expect(strays).toEqual([["first", "a stray answer"]]);
  finding = () => Promise.reject(new Error("the database is away"));
  registered.set("first", "2");
  await all.refresh();
  expect(troubles).toEqual([new Error("the database is away")]);
  finding = () => undefined;
  await all.refresh();
  expect(links).toHaveLength(2);
});

test("an answer in flight is waited for, and new messages go over the new link", async () => {
  const { all, registered, links, ended } = await opened();
  registered.set("first", "1").set("removed", "1");
  await all.refresh();
  const inFlight = ["first", "removed"].map((name) => all.of(name).ask(new Till().sale("tok_approve"), patient));
  registered.set("first", "2").delete("removed");
  await all.refresh();
  const [old, removed, fresh] = links;
  fresh?.goes.resolve();
  expect((await all.of("first").ask(new Till().sale("tok_decline_51"), patient)).responseCode).toBe("51");
  expect([old?.isClosed, removed?.isClosed, ended[2]]).toEqual([false, false, false]);
  old?.goes.resolve();
  removed?.goes.resolve();
  expect(await Promise.all(inFlight)).toMatchObject([{ responseCode: "00" }, { responseCode: "00" }]);
  await expect.poll(() => [old?.isClosed, removed?.isClosed, ended[2]]).toEqual([true, true, true]);
});

test("a link learns at its end whether another takes its place, or the process stops", async () => {
  const { all, registered, staysInUse } = await opened();
  registered.set("first", "1").set("second", "1");
  await all.refresh();
  registered.set("first", "2").delete("second");
  await all.refresh();
  expect(staysInUse.map((stays) => stays())).toEqual([true, false, true]);
  await all.stop();
  expect(staysInUse.map((stays) => stays())).toEqual([undefined, undefined, undefined]);
});

test("a registration that is found after the stop opens no link", async () => {
  const { all, registered, links } = await opened();
  const stopped = Promise.withResolvers<Promise<void>>();
  finding = () => stopped.resolve(all.stop());
  registered.set("first", "1");
  void all.refresh();
  await await stopped.promise;
  expect(links).toEqual([]);
});

test("an answer that does not come holds the old link up for as long as it is waited for, and no longer", async () => {
  const { all, registered, links } = await opened(20);
  registered.set("first", "1");
  await all.refresh();
  const inFlight = all.of("first").ask(new Till().sale("tok_approve"), patient);
  registered.delete("first");
  await all.refresh();
  await expect.poll(() => links[0]?.isClosed).toBe(true);
  links[0]?.goes.resolve();
  await expect(inFlight).rejects.toBeInstanceOf(NotSent);
});

test("one that cannot be opened is listed, and says why", async () => {
  const { all, registered, troubles } = await opened();
  registered.set("first", "wrong");
  await all.refresh();
  expect(all.of("first").health?.()).toEqual({
    ok: false,
    detail: "cannot be opened: the profile cannot be used",
  });
  await expect(all.of("first").ask(new Till().sale("tok_approve"), patient)).rejects.toBeInstanceOf(NotSent);
  expect(troubles).toHaveLength(1);
});

test("an answer that comes before the service has started is reported once it can be", async () => {
  let unmatched: (answer: UnmatchedAnswer) => void = () => expect.fail("nobody listens to the link");
  const ofSettings: Acquirer = {
    approvals: new Set(["00"]),
    ask: () => Promise.reject(new NotSent("nothing is asked")),
    refusesToken: () => undefined,
    onUnmatchedAnswer(listener) {
      unmatched = listener;
    },
    close: async () => undefined,
  };
  const store = { versions: async () => new Map(), find: async () => undefined };
  const open = () => expect.fail("none is registered");
  acquirers = new OpenAcquirers({ ofSettings, store, open, drainMs: 0, onTrouble: () => undefined });
  const answers = ["1", "2"].map((field11) => ({ known: { field11 } }) as unknown as UnmatchedAnswer);
  for (const answer of answers) unmatched(answer);
  const reported: [string, UnmatchedAnswer][] = [];
  acquirers.onUnmatchedAnswer((...given) => void reported.push(given));
  await acquirers.start();
  expect(reported).toEqual(answers.map((answer) => ["", answer]));
  unmatched(answers[0] as UnmatchedAnswer);
  expect(reported).toHaveLength(3);
});
