import { describe, expect, test } from "vitest";
import type { Acquirer, AcquirerMessage } from "./acquirer.ts";
import { type AcquirerUnderTest, acquirerConformance } from "./conformance.ts";
import { SimulatedBank } from "./simulator/bank.ts";
import { SimulatedAcquirer } from "./simulator/simulator.ts";
import { Till } from "./till.fixture.ts";

const tokens: AcquirerUnderTest["tokens"] = {
  approved: "tok_approve",
  declined: { token: "tok_decline_51", responseCode: "51" },
  silent: "tok_timeout",
  late: "tok_late",
  silentFollowUps: "tok_then_timeout",
  lateFollowUps: "tok_then_late",
  unusable: "4242-stolen-token",
};

const strict = () => ({ lateByMs: 10, bank: new SimulatedBank({ strict: true }) });

describe("the simulator is an acquirer: it", () => {
  acquirerConformance(test, { open: () => new SimulatedAcquirer(strict()), tokens });
});

describe("the simulator with latency is an acquirer too: it", () => {
  acquirerConformance(test, { open: () => new SimulatedAcquirer({ ...strict(), latencyMs: 1 }), tokens });
});

/** A host that recognises a message only by its data elements, as ISO 8583 hosts do: it never sees our ids. */
class ByDataElements extends SimulatedAcquirer {
  override ask(...[message, options]: Parameters<Acquirer["ask"]>) {
    const { mid } = message;
    const knownBy = ({ command, tid, traceNo, atMs }: Pick<AcquirerMessage, "command" | "tid" | "traceNo" | "atMs">) =>
      [mid, tid, command, traceNo, atMs].join(" ");
    const transactionId = knownBy(message);
    if ("original" in message) {
      const original = { ...message.original, transactionId: knownBy(message.original) };
      return super.ask({ ...message, transactionId, original } as AcquirerMessage, options);
    }
    if (message.command !== "BATCH_UPLOAD") return super.ask({ ...message, transactionId }, options);
    const uploaded = { ...message.uploaded, transactionId: knownBy(message.uploaded) };
    return super.ask({ ...message, transactionId, uploaded }, options);
  }
}

describe("a host that knows messages by their data elements is an acquirer too: it", () => {
  acquirerConformance(test, { open: () => new ByDataElements(strict()), tokens });
});

/** Runs the suite without a runner: the names of the checks that fail. */
async function failures(open: () => Acquirer, till?: AcquirerUnderTest["till"]): Promise<string[]> {
  const checks: { name: string; run: () => Promise<void> }[] = [];
  acquirerConformance((name, run) => checks.push({ name, run }), { open, tokens, ...(till && { till }) });
  const outcomes = await Promise.allSettled(checks.map(({ run }) => run()));
  return checks.filter((_, at) => outcomes[at]?.status === "rejected").map(({ name }) => name);
}

/** An acquirer that confuses a message with another one. */
function mistaking(mistake: (message: AcquirerMessage) => AcquirerMessage): () => Acquirer {
  class Mistaken extends SimulatedAcquirer {
    override ask(...[message, options]: Parameters<Acquirer["ask"]>) {
      return super.ask(mistake(message), options);
    }
  }
  return () => new Mistaken(strict());
}

describe("the conformance suite", () => {
  test("fails where messages share trace number and time, whatever the acquirer makes of that", async () => {
    class Reusing extends Till {
      override upload(...uploaded: Parameters<Till["upload"]>) {
        return { ...super.upload(...uploaded), traceNo: "000001", atMs: 0 };
      }
    }
    const believing = () => new SimulatedAcquirer({ bank: new SimulatedBank() });
    expect(await failures(believing, (number) => new Reusing(number))).toContain(
      "settles by what was uploaded, after a mismatch",
    );
    class Stuck extends Till {
      override sale(...charged: Parameters<Till["sale"]>) {
        return { ...super.sale(...charged), traceNo: "000001", atMs: 0 };
      }
    }
    const stuck = await failures(
      () => new SimulatedAcquirer(strict()),
      (number) => new Stuck(number),
    );
    expect(stuck).toEqual(expect.arrayContaining(["answers concurrent messages, each with its own answer"]));
  });

  test("catches an acquirer that answers a decline with an error", async () => {
    class Throws extends SimulatedAcquirer {
      override async ask(...[message, options]: Parameters<Acquirer["ask"]>) {
        const answer = await super.ask(message, options);
        if (answer.responseCode === "51") throw new Error("declined");
        return answer;
      }
    }
    expect(await failures(() => new Throws(strict()))).toEqual([
      "answers concurrent messages, each with its own answer",
      "answers a declined Sale with its code, as an answer and not as an error",
      "declines the Void of what it never saw, of what it declined, and of a Void",
      "gives a repeat the first answer, and acts once",
      "reverses what it declined, which changes nothing",
    ]);
  });

  test("catches an acquirer that hands over a late answer twice", async () => {
    class Twice extends SimulatedAcquirer {
      override ask(...[message, options]: Parameters<Acquirer["ask"]>) {
        const onLateAnswer: typeof options.onLateAnswer = (answer) => {
          options.onLateAnswer(answer);
          options.onLateAnswer(answer);
        };
        return super.ask(message, { ...options, onLateAnswer });
      }
    }
    expect(await failures(() => new Twice(strict()))).toEqual([
      "hands a late answer to onLateAnswer, once, after the time-out",
      "hands a follow-up's late answer over likewise",
    ]);
  });

  test("catches an acquirer that accepts every token", async () => {
    class Takes extends SimulatedAcquirer {
      override refusesToken() {
        return undefined;
      }
    }
    expect(await failures(() => new Takes(strict()))).toEqual([
      "refuses a token it cannot use, without repeating it, and accepts those it can",
    ]);
  });

  test("catches an acquirer that acts on a repeat once more", async () => {
    const anew = (message: AcquirerMessage) => {
      return message.repeat ? { ...message, transactionId: `${message.transactionId}-again` } : message;
    };
    const caught = await failures(mistaking(anew));
    expect(caught).toContain("gives a repeat the first answer, and acts once");
    expect(caught).toContain("gives a repeated Settlement the first answer, accepted or not");
    expect(caught).toContain("declines the repeat of an approval that was reversed meanwhile");
  });

  test("catches an acquirer that answers every Reversal without undoing anything", async () => {
    class Ignores extends SimulatedAcquirer {
      override ask(...[message, options]: Parameters<Acquirer["ask"]>) {
        if (message.command !== "REVERSAL") return super.ask(message, options);
        return Promise.resolve({ responseCode: "00", approveCode: "", refId: "", tc: "" });
      }
    }
    expect(await failures(() => new Ignores(strict()))).toEqual([
      "reverses a Sale that it never answered: it counts nowhere",
      "reverses a Sale and a PreAuth that it approved: neither can be followed then",
      "reverses a Void that it never answered: its original is valid again",
      "reverses a PreAuth-Complete: the PreAuth can be completed again",
      "answers 25 to a Reversal of an unknown message, and declines that message if it arrives later",
      "declines the repeat of an approval that was reversed meanwhile",
      "gives a repeated Reversal the same answer, found or not",
      "reverses a Refund that it never answered: as much can be refunded again",
    ]);
  });

  test("catches an acquirer that settles any totals", async () => {
    class Agrees extends SimulatedAcquirer {
      override ask(...[message, options]: Parameters<Acquirer["ask"]>) {
        if (message.command !== "SETTLEMENT") return super.ask(message, options);
        return Promise.resolve({ responseCode: "00", approveCode: "", refId: "", tc: "" });
      }
    }
    expect(await failures(() => new Agrees(strict()))).toEqual([
      "answers 95 when the totals differ, and leaves the batch open",
      "settles a batch once: the next begins empty, and nothing of it is voided",
      "gives a repeated Settlement the first answer, accepted or not",
      "settles by what was uploaded, after a mismatch",
      "refunds a settled Sale and PreAuth-Complete in parts, up to their amounts",
      "settles by uploaded Refunds, too",
    ]);
  });

  test("catches an acquirer that loses what is uploaded", async () => {
    const toLogon = (message: AcquirerMessage): AcquirerMessage => {
      const { transactionId, tid, mid, traceNo, atMs, repeat, command } = message;
      const header = { transactionId, tid, mid, traceNo, atMs, repeat };
      return command === "BATCH_UPLOAD" ? { command: "LOGON", ...header } : message;
    };
    expect(await failures(mistaking(toLogon))).toEqual([
      "settles by what was uploaded, after a mismatch",
      "settles by uploaded Refunds, too",
    ]);
  });
});
