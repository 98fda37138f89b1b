import { afterEach, describe, expect, test } from "vitest";
import { type AcquirerAnswer, type AuthorisationMessage, NoAnswer } from "../acquirer.ts";
import { seededRandom } from "./codes.ts";
import { SimulatedAcquirer, type SimulatorOptions } from "./simulator.ts";

const opened: SimulatedAcquirer[] = [];
afterEach(async () => {
  for (const acquirer of opened.splice(0)) await acquirer.close();
});

function open(options: SimulatorOptions = {}): SimulatedAcquirer {
  const acquirer = new SimulatedAcquirer(options);
  opened.push(acquirer);
  return acquirer;
}

function sale(cardToken: string, number = 1): AuthorisationMessage {
  const trace = number.toString().padStart(6, "0");
  return {
    command: "SALE",
    transactionId: `01980000-0000-7000-8000-000000${trace}`,
    tid: "T0000001",
    mid: "M00000000000001",
    traceNo: trace,
    invoiceNo: trace,
    batchNo: "000001",
    amountMinor: 150_000n,
    currency: "VND",
    cardToken,
  };
}

const patient = { timeoutMs: 10_000, onLateAnswer: () => expect.fail("no late answer is due") };

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
  ])("%s answers %s", async (token, responseCode) => {
    const answer = await open().ask(sale(token), patient);
    expect(answer.responseCode).toBe(responseCode);
  });

  test("an approval has six characters of code and twelve digits of reference, a decline neither", async () => {
    const acquirer = open();
    const approved = await acquirer.ask(sale("tok_approve", 1), patient);
    expect(approved.approveCode).toMatch(/^[0-9A-Z]{6}$/);
    expect(approved.refId).toMatch(/^[0-9]{12}$/);
    const declined = await acquirer.ask(sale("tok_decline_51", 2), patient);
    expect(declined).toEqual({ responseCode: "51", approveCode: "", refId: "", tc: "" });
  });

  test.each([
    "",
    "tok",
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
    "tok_approve ",
  ])("refuses %j before anything, naming the ones it knows", (token) => {
    expect(open().refusesToken(token)).toContain("tok_decline_<code>");
  });

  test("tok_slow is in time below the time-out, and late above it", async () => {
    const acquirer = open();
    const late = Promise.withResolvers<AcquirerAnswer>();
    const asked = acquirer.ask(sale("tok_slow_30"), { timeoutMs: 5, onLateAnswer: late.resolve });
    await expect(asked).rejects.toBeInstanceOf(NoAnswer);
    expect((await late.promise).responseCode).toBe("00");
  });
});

describe("the simulator's answers", () => {
  test("come in a microtask when no latency is set: throughput is measured through it", async () => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    const before = timers();
    let answered = false;
    const asked = open().ask(sale("tok_approve"), patient);
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
      const acquirer = open({ random: seededRandom(seed) });
      return Promise.all([1, 2, 3].map((number) => acquirer.ask(sale("tok_approve", number), patient)));
    };
    expect(await answers(7)).toEqual(await answers(7));
    expect(await answers(7)).not.toEqual(await answers(8));
  });

  test("a message that comes twice is booked once and answered 94", async () => {
    const acquirer = open();
    await acquirer.ask(sale("tok_approve"), patient);
    expect((await acquirer.ask(sale("tok_approve"), patient)).responseCode).toBe("94");
    expect(acquirer.books.all()).toHaveLength(1);
  });
});

describe("the simulator's books", () => {
  test("hold every authorisation, found by transaction and by terminal and traceNo, without the card", async () => {
    const acquirer = open();
    await acquirer.ask(sale("tok_approve", 1), patient);
    await acquirer.ask(sale("tok_decline_51", 2), patient);
    const declined = acquirer.books.findByTrace("T0000001", "000002");
    expect(declined).toMatchObject({ responseCode: "51", approved: false, amountMinor: 150_000n, currency: "VND" });
    expect(acquirer.books.find(sale("tok_approve", 1).transactionId)).toMatchObject({ approved: true });
    expect(Object.keys(declined ?? {})).not.toContain("cardToken");
  });

  test("hold an approval whose answer never came: that is what a Reversal is for", async () => {
    const acquirer = open();
    const asked = acquirer.ask(sale("tok_timeout"), { ...patient, timeoutMs: 5 });
    await expect(asked).rejects.toBeInstanceOf(NoAnswer);
    expect(acquirer.books.findByTrace("T0000001", "000001")).toMatchObject({ approved: true });
  });

  test("forget the oldest beyond their bound, and no newer one under the same traceNo", async () => {
    const acquirer = open({ bookingsMax: 2 });
    await acquirer.ask({ ...sale("tok_approve", 1), traceNo: "000009" }, patient);
    await acquirer.ask({ ...sale("tok_approve", 2), traceNo: "000009" }, patient);
    await acquirer.ask(sale("tok_approve", 3), patient);
    expect(acquirer.books.all()).toHaveLength(2);
    expect(acquirer.books.find(sale("tok_approve", 1).transactionId)).toBeUndefined();
    expect(acquirer.books.findByTrace("T0000001", "000009")?.transactionId).toBe(sale("x", 2).transactionId);
  });
});
