import assert from "node:assert/strict";
import { type Acquirer, type AcquirerAnswer, type AuthorisationMessage, NoAnswer, NotSent } from "./acquirer.ts";

/** How an acquirer is put to the test. */
export interface AcquirerUnderTest {
  /** A link of its own, ready to be asked. The suite closes it. */
  open(): Promise<Acquirer> | Acquirer;
  readonly tokens: {
    readonly approved: string;
    readonly declined: { readonly token: string; readonly responseCode: string };
    /** Never answered. */
    readonly silent: string;
    /** Approved, after any time-out. */
    readonly late: string;
    readonly unusable: string;
  };
}

/** A test runner's own: vitest's `test` is one. */
export type RegisterTest = (name: string, run: () => Promise<void>) => void;

/** What the ledger relies on in every acquirer, as tests. */
export function acquirerConformance(register: RegisterTest, subject: AcquirerUnderTest): void {
  const { tokens } = subject;

  const check = (name: string, run: (acquirer: Acquirer) => Promise<void>): void =>
    register(name, async () => {
      const acquirer = await subject.open();
      try {
        await run(acquirer);
      } finally {
        await acquirer.close();
      }
    });

  check("counts 00 among its approvals", async (acquirer) => {
    assert.ok(acquirer.approvals.has("00"));
  });

  check("refuses a token it cannot use, without repeating it, and takes those it can", async (acquirer) => {
    const refusal = acquirer.refusesToken(tokens.unusable);
    assert.ok(refusal !== undefined && refusal.length > 0);
    assert.ok(!refusal.includes(tokens.unusable));
    for (const token of [tokens.approved, tokens.declined.token, tokens.silent, tokens.late]) {
      assert.equal(acquirer.refusesToken(token), undefined);
    }
  });

  check("answers an approved Sale and PreAuth with 00, an approval code and a reference", async (acquirer) => {
    for (const [at, command] of (["SALE", "PREAUTH"] as const).entries()) {
      const answer = await acquirer.ask({ ...message(tokens.approved, at + 1), command }, patient());
      assert.equal(answer.responseCode, "00");
      assert.match(answer.approveCode, /^[0-9A-Z]{1,6}$/);
      assert.match(answer.refId, /^[0-9A-Z]{1,12}$/);
    }
  });

  check("answers a declined Sale with its code, as an answer and not as an error", async (acquirer) => {
    const answer = await acquirer.ask(message(tokens.declined.token), patient());
    assert.equal(answer.responseCode, tokens.declined.responseCode);
    assert.ok(!acquirer.approvals.has(answer.responseCode));
  });

  check("answers a Logon with 00", async (acquirer) => {
    const { transactionId, tid, mid, traceNo } = message(tokens.approved);
    const answer = await acquirer.ask({ command: "LOGON", transactionId, tid, mid, traceNo }, patient());
    assert.equal(answer.responseCode, "00");
  });

  check("ends in NoAnswer when no answer came in time", async (acquirer) => {
    await assert.rejects(acquirer.ask(message(tokens.silent), { ...patient(), timeoutMs: 20 }), NoAnswer);
  });

  check("hands a late answer to onLateAnswer, once, after the time-out", async (acquirer) => {
    const late = Promise.withResolvers<AcquirerAnswer>();
    const seen: string[] = [];
    const asked = acquirer.ask(message(tokens.late), {
      timeoutMs: 20,
      onLateAnswer: (answer) => {
        seen.push("late answer");
        late.resolve(answer);
      },
    });
    await assert.rejects(asked, NoAnswer);
    seen.push("time-out");
    assert.equal((await late.promise).responseCode, "00");
    await acquirer.close();
    assert.deepEqual(seen, ["time-out", "late answer"]);
  });

  check("answers many at once, each its own", async (acquirer) => {
    const asked = Array.from({ length: 200 }, (_, at) => {
      const token = at % 2 === 0 ? tokens.approved : tokens.declined.token;
      return acquirer.ask(message(token, at + 1), patient());
    });
    const codes = (await Promise.all(asked)).map((answer) => answer.responseCode);
    assert.deepEqual(
      codes,
      codes.map((_, at) => (at % 2 === 0 ? "00" : tokens.declined.responseCode)),
    );
  });

  check("leaves nobody waiting when it is closed, and delivers nothing afterwards", async (acquirer) => {
    const asked = acquirer.ask(message(tokens.silent), patient());
    const ended = assert.rejects(asked, NoAnswer);
    await acquirer.close();
    await ended;
  });

  check("ends in NotSent once it is closed, because nothing can have left", async (acquirer) => {
    await acquirer.close();
    await assert.rejects(acquirer.ask(message(tokens.approved), patient()), NotSent);
  });
}

function patient() {
  return { timeoutMs: 10_000, onLateAnswer: () => assert.fail("an answer in time is no late answer") };
}

function message(cardToken: string, traceNo = 1): AuthorisationMessage {
  const trace = traceNo.toString().padStart(6, "0");
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
