import assert from "node:assert/strict";
import { type Acquirer, NoAnswer, NotSent } from "./acquirer.ts";
import { approval, type Check, codeOf, lateAnswer, patient, rejectsUnanswered } from "./conformance-ask.fixture.ts";
import { conformsInMoney } from "./conformance-money.ts";
import { conformsInReversals } from "./conformance-reversal.ts";
import { conformsInRefunds, conformsInSettlement } from "./conformance-settlement.ts";
import { again, Till } from "./till.fixture.ts";

/** An acquirer under test, and the means to provoke its behaviour. */
export interface AcquirerUnderTest {
  /** A link of its own to a bank that knows nothing yet of the suite's terminals. The suite closes it. */
  open(): Promise<Acquirer> | Acquirer;
  /** A terminal of the suite, which numbers its messages; `number` identifies it. */
  readonly till?: (number: number) => Till;
  readonly tokens: {
    readonly approved: string;
    readonly declined: { readonly token: string; readonly responseCode: string };
    /** Acted on, never answered. */
    readonly silent: string;
    /** Approved, after any time-out. */
    readonly late: string;
    /** Approved; its Voids and PreAuth-Completes are acted on and never answered. */
    readonly silentFollowUps: string;
    /** Approved; its Voids and PreAuth-Completes are approved after any time-out. */
    readonly lateFollowUps: string;
    readonly unusable: string;
  };
}

/** A test runner's own: vitest's `test` is one. */
export type RegisterTest = (name: string, run: () => Promise<void>) => void;

/** The ledger's requirements on every acquirer, as tests. */
export function acquirerConformance(register: RegisterTest, subject: AcquirerUnderTest): void {
  const { till = (number) => new Till(number) } = subject;
  const check: Check = (name, run) =>
    register(name, async () => {
      const acquirer = await subject.open();
      try {
        await run(numbering(acquirer), till(1), () => till(2));
      } finally {
        await acquirer.close();
      }
    });
  conformsAsLink(check, subject.tokens);
  conformsInMoney(check, subject.tokens);
  conformsInReversals(check, subject.tokens);
  conformsInSettlement(check, subject.tokens);
  conformsInRefunds(check, subject.tokens);
}

/**
 * Asks as the ledger must: each message has a unique trace number and time on its terminal, and only a repeat has
 * its first one's. A host would treat anything else as a repeat.
 */
function numbering(acquirer: Acquirer): Acquirer {
  const numbers = new Map<string, string>();
  return {
    approvals: acquirer.approvals,
    refusesToken: (token) => acquirer.refusesToken(token),
    close: () => acquirer.close(),
    ask(message, options) {
      const { mid, tid, traceNo, atMs, repeat, ...content } = message;
      const number = [mid, tid, traceNo, atMs].join(" ");
      const asked = JSON.stringify(content, (_, value) => (typeof value === "bigint" ? value.toString() : value));
      const first = numbers.get(number) ?? asked;
      numbers.set(number, first);
      assert.equal(asked, first, `trace number ${traceNo} and its time belong to another message`);
      return acquirer.ask(message, options);
    },
  };
}

function conformsAsLink(check: Check, tokens: AcquirerUnderTest["tokens"]): void {
  check("counts 00 among its approvals", async (acquirer) => {
    assert.ok(acquirer.approvals.has("00"));
  });

  check("refuses a token it cannot use, without repeating it, and accepts those it can", async (acquirer) => {
    const refusal = acquirer.refusesToken(tokens.unusable);
    assert.ok(refusal !== undefined && refusal.length > 0);
    assert.ok(!refusal.includes(tokens.unusable));
    const { approved, declined, silent, late, silentFollowUps, lateFollowUps } = tokens;
    for (const token of [approved, declined.token, silent, late, silentFollowUps, lateFollowUps]) {
      assert.equal(acquirer.refusesToken(token), undefined);
    }
  });

  check("answers a Logon with 00, and its repeat too", async (acquirer, till) => {
    const logon = till.logon();
    assert.equal(await codeOf(acquirer, logon), "00");
    assert.equal(await codeOf(acquirer, again(logon)), "00");
  });

  check("ends in NoAnswer when no answer came in time", async (acquirer, till) => {
    await rejectsUnanswered(acquirer, till.sale(tokens.silent));
  });

  check("hands a late answer to onLateAnswer, once, after the time-out", async (acquirer, till) => {
    assert.equal((await lateAnswer(acquirer, till.sale(tokens.late))).responseCode, "00");
  });

  check("hands a follow-up's late answer over likewise", async (acquirer, till) => {
    const sale = till.sale(tokens.lateFollowUps);
    const voided = till.void(sale, await approval(acquirer, sale));
    assert.equal((await lateAnswer(acquirer, voided)).responseCode, "00");
  });

  check("answers concurrent messages, each with its own answer", async (acquirer, till) => {
    const asked = Array.from({ length: 200 }, (_, at) => {
      return codeOf(acquirer, till.sale(at % 2 === 0 ? tokens.approved : tokens.declined.token));
    });
    const codes = await Promise.all(asked);
    assert.deepEqual(
      codes,
      codes.map((_, at) => (at % 2 === 0 ? "00" : tokens.declined.responseCode)),
    );
  });

  check("leaves no caller waiting when it is closed, and delivers nothing afterwards", async (acquirer, till) => {
    const ended = assert.rejects(acquirer.ask(till.sale(tokens.silent), patient()), NoAnswer);
    await acquirer.close();
    await ended;
  });

  check("ends in NotSent once it is closed, because nothing can have left", async (acquirer, till) => {
    await acquirer.close();
    await assert.rejects(acquirer.ask(till.sale(tokens.approved), patient()), NotSent);
  });
}
