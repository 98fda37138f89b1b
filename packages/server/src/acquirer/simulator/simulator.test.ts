import { afterEach, describe, expect, test } from "vitest";
import { type AcquirerAnswer, type AcquirerMessage, NoAnswer, NotSent } from "../acquirer.ts";
import { again, emptyTotals, Till } from "../till.fixture.ts";
import { type Random, SimulatedBank } from "./bank.ts";
import { next } from "./behaviour.ts";
import { SimulatedAcquirer, type SimulatorOptions } from "./simulator.ts";

const opened: SimulatedAcquirer[] = [];
afterEach(async () => {
  for (const acquirer of opened.splice(0)) await acquirer.close();
});

function open(options: SimulatorOptions = {}): SimulatedAcquirer {
  const acquirer = new SimulatedAcquirer({ bank: new SimulatedBank({ strict: true }), lateByMs: 1, ...options });
  opened.push(acquirer);
  return acquirer;
}

const patient = { timeoutMs: 600_000, onLateAnswer: () => expect.fail("no late answer is due") };
const hasty = { ...patient, timeoutMs: 5 };

/** Asks in vain, and resolves to the late answer. */
async function late(acquirer: SimulatedAcquirer, message: AcquirerMessage): Promise<AcquirerAnswer> {
  const { promise, resolve } = Promise.withResolvers<AcquirerAnswer>();
  await expect(acquirer.ask(message, { timeoutMs: 5, onLateAnswer: resolve })).rejects.toBeInstanceOf(NoAnswer);
  return promise;
}

describe("the simulator's test cards", () => {
  test.each([
    ["tok_approve", "00"],
    ["tok_approve_08", "08"],
    ["tok_approve_10", "10"],
    ["tok_approve_11", "11"],
    ["tok_approve_16", "16"],
    ["tok_decline_05", "05"],
    ["tok_decline_51", "51"],
    ["tok_decline_96", "96"],
    ["tok_slow_5", "00"],
    ["tok_then_timeout", "00"],
    ["tok_then_decline_51", "00"],
  ])("%s answers %s", async (token, responseCode) => {
    const answer = await open().ask(new Till().sale(token), patient);
    expect(answer.responseCode).toBe(responseCode);
  });

  test("an approval has six characters of code and twelve digits of reference, a decline neither", async () => {
    const till = new Till();
    const approved = await open().ask(till.sale("tok_approve"), patient);
    expect(approved.approveCode).toMatch(/^[0-9A-Z]{6}$/);
    expect(approved.refId).toMatch(/^[0-9]{12}$/);
    const declined = await open().ask(till.sale("tok_decline_51"), patient);
    expect(declined).toEqual({ responseCode: "51", approveCode: "", refId: "", tc: "", site: "simulator" });
  });

  test.each([
    "",
    "tok",
    "tok_",
    "TOK_APPROVE",
    "tok_approve_",
    "tok_approve_05",
    "tok_approve_000",
    "tok_decline_00",
    "tok_decline_5",
    "tok_decline_511",
    "tok_slow_",
    "tok_slow_-1",
    "tok_slow_600001",
    "tok_slow_1e3",
    "tok_break_",
    "tok_break_600001",
    "tok_approve ",
    "tok_then_",
    "tok_then_then_timeout",
    "tok_then_decline_00",
  ])("refuses %j before anything, naming the ones it knows", (token) => {
    expect(open().refusesToken(token)).toContain("tok_decline_<code>");
  });

  test("tok_break breaks the link at once, and is booked later although it was reversed meanwhile", async () => {
    const acquirer = open();
    const till = new Till();
    const sale = till.sale("tok_break_20");
    await expect(acquirer.ask(sale, patient)).rejects.toBeInstanceOf(NoAnswer);
    expect((await acquirer.ask(till.reversal(sale), patient)).responseCode).toBe("25");
    await expect.poll(() => acquirer.bank.find(sale.transactionId)?.state, { interval: 5 }).toBe("stands");
    expect((await acquirer.ask(again(till.reversal(sale)), patient)).responseCode).toBe("00");
    expect(acquirer.bank.find(sale.transactionId)?.state).toBe("reversed");
  });

  test("tok_slow is in time below the time-out, and late above it", async () => {
    expect((await late(open(), new Till().sale("tok_slow_30"))).responseCode).toBe("00");
  });

  test.each([
    ["tok_then_decline_51", "51"],
    ["tok_then_approve_08", "08"],
    ["tok_then_slow_2", "00"],
  ])("%s has its Voids and PreAuth-Completes answered %s", async (token, responseCode) => {
    const acquirer = open();
    const till = new Till();
    const sale = till.sale(token);
    const voided = till.void(sale, await acquirer.ask(sale, patient));
    expect(await acquirer.ask(voided, patient)).toMatchObject({ responseCode });
    const preAuth = till.preAuth(token);
    const complete = till.complete(preAuth, await acquirer.ask(preAuth, patient));
    expect(await acquirer.ask(complete, patient)).toMatchObject({ responseCode });
  });

  test("tok_then_late has the Void of its Complete answered late too", async () => {
    const acquirer = open();
    const till = new Till();
    const preAuth = till.preAuth("tok_then_late");
    const complete = till.complete(preAuth, await acquirer.ask(preAuth, patient));
    const voided = till.void(complete, await late(acquirer, complete));
    expect(await late(acquirer, voided)).toMatchObject({ responseCode: "00" });
  });
});

describe("the simulator's answers", () => {
  test("come in a microtask when no latency is set: throughput is measured through it", async () => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    const before = timers();
    let answered = false;
    const asked = open().ask(new Till().sale("tok_approve"), patient);
    const seen = asked.then(() => {
      answered = true;
    });
    expect(timers()).toBe(before);
    for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
    expect(answered).toBe(true);
    await seen;
  });

  test("are the same for the same seed, and differ for another", async () => {
    const answers = (seed: number) => {
      const acquirer = open({ bank: new SimulatedBank({ random: seededRandom(seed) }) });
      const till = new Till();
      return Promise.all([1, 2, 3].map(() => acquirer.ask(till.sale("tok_approve"), patient)));
    };
    expect(await answers(7)).toEqual(await answers(7));
    expect(await answers(7)).not.toEqual(await answers(8));
  });
});

describe("a rule of the simulator", () => {
  test("has the next Void never answered, though the bank acted on it, and leaves the one after alone", async () => {
    const acquirer = open();
    const till = new Till();
    const [first, second] = [till.sale("tok_approve"), till.sale("tok_approve")];
    const voids = [
      till.void(first, await acquirer.ask(first, patient)),
      till.void(second, await acquirer.ask(second, patient)),
    ] as const;
    acquirer.behave(next("VOID", { answers: "never" }));
    await expect(acquirer.ask(voids[0], hasty)).rejects.toBeInstanceOf(NoAnswer);
    expect(acquirer.bank.find(first.transactionId)?.state).toBe("voided");
    expect(await acquirer.ask(voids[1], patient)).toMatchObject({ responseCode: "00" });
  });

  test.each(["logon", "settlement", "reversal", "upload"] as const)("declines a %s, and ends", async (kind) => {
    const acquirer = open();
    const till = new Till();
    const sale = till.sale("tok_approve");
    const answer = await acquirer.ask(sale, patient);
    const make = {
      logon: () => till.logon(),
      settlement: () => {
        return till.settlement({ ...emptyTotals, saleQuantity: 1, saleTotalMinor: sale.amountMinor });
      },
      reversal: () => till.reversal(sale),
      upload: () => till.upload(sale, answer),
    }[kind];
    const end = acquirer.behave(() => ({ declines: "96" }));
    expect(await acquirer.ask(make(), patient)).toMatchObject({ responseCode: "96" });
    expect(acquirer.bank.find(sale.transactionId)?.state).toBe("stands");
    end();
    expect(await acquirer.ask(make(), patient)).toMatchObject({ responseCode: "00" });
  });

  test("overrules a test card and an earlier rule, and leaves them what it does not mean", async () => {
    const acquirer = open();
    const till = new Till();
    acquirer.behave(() => ({ declines: "05" }));
    acquirer.behave(next("SALE", { approves: "08" }));
    expect(await acquirer.ask(till.sale("tok_decline_51"), patient)).toMatchObject({ responseCode: "08" });
    expect(await acquirer.ask(till.sale("tok_decline_51"), patient)).toMatchObject({ responseCode: "05" });
  });

  test("has a message lost: the bank never saw it", async () => {
    const acquirer = open();
    const till = new Till();
    const sale = till.sale("tok_approve");
    acquirer.behave(next("SALE", { answers: "lost" }));
    await expect(acquirer.ask(sale, hasty)).rejects.toBeInstanceOf(NoAnswer);
    expect(await acquirer.ask(till.reversal(sale), patient)).toMatchObject({ responseCode: "25" });
  });

  test("has a message delayed beyond its Reversal: it is declined, late, and books nothing", async () => {
    const acquirer = open({ lateByMs: 20 });
    const till = new Till();
    const sale = till.sale("tok_approve");
    acquirer.behave(next("SALE", { answers: "delayed" }));
    const { promise, resolve } = Promise.withResolvers<AcquirerAnswer>();
    await expect(acquirer.ask(sale, { timeoutMs: 5, onLateAnswer: resolve })).rejects.toBeInstanceOf(NoAnswer);
    expect(await acquirer.ask(till.reversal(sale), patient)).toMatchObject({ responseCode: "25" });
    expect(await promise).toMatchObject({ responseCode: "12" });
    expect(acquirer.bank.all()).toEqual([]);
  });

  test("has a message not sent", async () => {
    const acquirer = open();
    acquirer.behave(next("LOGON", { answers: "not_sent" }));
    const till = new Till();
    await expect(acquirer.ask(till.logon(), patient)).rejects.toBeInstanceOf(NotSent);
    expect(await acquirer.ask(till.logon(), patient)).toMatchObject({ responseCode: "00" });
  });
});

describe("an outage of the simulator", () => {
  test("sends nothing, until it is restored", async () => {
    const acquirer = open();
    const sale = new Till().sale("tok_approve");
    acquirer.outage("not_sent");
    await expect(acquirer.ask(sale, patient)).rejects.toBeInstanceOf(NotSent);
    expect(acquirer.bank.all()).toEqual([]);
    acquirer.restore();
    expect(await acquirer.ask(again(sale), patient)).toMatchObject({ responseCode: "00" });
  });

  test("breaks the link after the bank acted: the repeat learns how", async () => {
    const acquirer = open();
    const sale = new Till().sale("tok_approve");
    acquirer.outage("no_answer");
    await expect(acquirer.ask(sale, patient)).rejects.toBeInstanceOf(NoAnswer);
    expect(acquirer.bank.find(sale.transactionId)?.state).toBe("stands");
    acquirer.restore();
    expect(await acquirer.ask(again(sale), patient)).toMatchObject({ responseCode: "00" });
    expect(acquirer.bank.all()).toHaveLength(1);
  });
});

test("two links that share a bank are two processes before one acquirer", async () => {
  const bank = new SimulatedBank({ strict: true });
  const [one, other] = [open({ bank }), open({ bank })];
  const till = new Till();
  const sale = till.sale("tok_timeout");
  await expect(one.ask(sale, hasty)).rejects.toBeInstanceOf(NoAnswer);
  await one.close();
  expect(await other.ask(till.reversal(sale), patient)).toMatchObject({ responseCode: "00" });
});

/** Mulberry32: a seeded random source. */
function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
