import { describe, expect, test } from "vitest";
import type { Acquirer } from "./acquirer.ts";
import { type AcquirerUnderTest, acquirerConformance } from "./conformance.ts";
import { SimulatedAcquirer } from "./simulator/simulator.ts";

const tokens: AcquirerUnderTest["tokens"] = {
  approved: "tok_approve",
  declined: { token: "tok_decline_51", responseCode: "51" },
  silent: "tok_timeout",
  late: "tok_late",
  unusable: "4242-stolen-token",
};

describe("the simulator is an acquirer: it", () => {
  acquirerConformance(test, { open: () => new SimulatedAcquirer({ lateByMs: 10 }), tokens });
});

describe("the simulator with latency is an acquirer too: it", () => {
  acquirerConformance(test, { open: () => new SimulatedAcquirer({ latencyMs: 3, lateByMs: 10 }), tokens });
});

/** Runs the suite without a runner: the names of the checks that fail. */
async function failures(open: () => Acquirer): Promise<string[]> {
  const checks: { name: string; run: () => Promise<void> }[] = [];
  acquirerConformance((name, run) => checks.push({ name, run }), { open, tokens });
  const outcomes = await Promise.allSettled(checks.map(({ run }) => run()));
  return checks.filter((_, at) => outcomes[at]?.status === "rejected").map(({ name }) => name);
}

describe("the conformance suite", () => {
  test("catches an acquirer that answers a decline with an error", async () => {
    class Throws extends SimulatedAcquirer {
      override async ask(...[message, options]: Parameters<Acquirer["ask"]>) {
        const answer = await super.ask(message, options);
        if (answer.responseCode === "51") throw new Error("declined");
        return answer;
      }
    }
    expect(await failures(() => new Throws({ lateByMs: 10 }))).toEqual([
      "answers a declined Sale with its code, as an answer and not as an error",
      "answers many at once, each its own",
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
    expect(await failures(() => new Twice({ lateByMs: 10 }))).toEqual([
      "hands a late answer to onLateAnswer, once, after the time-out",
    ]);
  });

  test("catches an acquirer that takes every token", async () => {
    class Takes extends SimulatedAcquirer {
      override refusesToken() {
        return undefined;
      }
    }
    expect(await failures(() => new Takes({ lateByMs: 10 }))).toEqual([
      "refuses a token it cannot use, without repeating it, and takes those it can",
    ]);
  });
});
