import { describe, expect, onTestFinished, test } from "vitest";
import type { TransactionId } from "../../ids.ts";
import { postgresReversals } from "../../store/reversals/reversals.ts";
import { field, LedgerBench, LedgerTill } from "../ledger.fixture.ts";

/** As a host sends it. */
const approval = { responseCode: "00", approveCode: "123456", refId: "000000000001", tc: "" };

const { bench, instance, partner } = await LedgerBench.ofFile();

describe("a command that the acquirer does not answer in time", () => {
  test("ends as ERROR 68 with its IPN, and its Reversal undoes what the bank had booked", async () => {
    const sale = await instance.ended(partner, new LedgerTill().sale("tok_timeout"));
    expect(sale).toMatchObject({
      state: "ERROR",
      facts: { fields: { status: "ERROR", isoResponseCode: "68", refId: "" } },
    });
    await bench.reversed(sale.id);
    expect(bench.bank.find(sale.id)).toMatchObject({ state: "reversed" });
    expect(await bench.ipnsOf(sale.id)).toEqual([sale.facts]);
    expect(await instance.find(partner, sale.id)).toMatchObject({ state: "ERROR", reversal: "done" });
  });

  test("is reversed with an event if the answer may be an approval, though its code is in no list", async () => {
    instance.nextFares("SALE", { approves: "85" });
    const sale = await instance.ended(partner, new LedgerTill().sale());
    expect(sale).toMatchObject({ state: "ERROR", facts: { fields: { isoResponseCode: "85" } } });
    expect((await instance.eventOf("answer_in_doubt", sale.id)).detail).toEqual({ responseCode: "85" });
    await bench.reversed(sale.id);
    expect(bench.bank.find(sale.id)).toMatchObject({ state: "reversed" });
  });

  test("has its Reversal repeated until it is answered, while the original is locked", async () => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, till.sale());
    const answered = instance.acquirer.behave(({ command }) =>
      command === "REVERSAL" ? { answers: "lost" } : undefined,
    );
    instance.nextFares("VOID", { answers: "never" });
    const firstVoid = await instance.ended(partner, till.void(sale));
    expect(firstVoid.state).toBe("ERROR");
    for (const tries of [1, 2, 3]) {
      await bench.tried(firstVoid.id, tries);
      expect(await bench.reversalOf(firstVoid.id)).toMatchObject({ state: "PENDING" });
      await expect(instance.run(partner, till.void(sale))).rejects.toMatchObject({ status: 409, code: "in_doubt" });
      await expect(instance.run(partner, till.reversal(sale))).rejects.toMatchObject({ status: 409, code: "in_doubt" });
      if (tries < 3) await bench.runDueNow();
    }
    answered();
    await expect
      .poll(bench.afterDue(() => bench.reversalOf(firstVoid.id)))
      .toMatchObject({ state: "DONE", code: "00" });
    expect(bench.bank.find(sale.id)).toMatchObject({ state: "stands" });
    expect(await instance.ended(partner, till.void(sale))).toMatchObject({ state: "SUCCESS" });
    expect(bench.bank.find(sale.id)).toMatchObject({ state: "voided" });
  });

  test("is reversed with 25 if it never reached the acquirer, and stays reversed if it arrives later", async () => {
    const till = new LedgerTill();
    instance.nextFares("SALE", { answers: "lost" });
    const lost = await instance.ended(partner, till.sale());
    await bench.reversed(lost.id, "25");
    instance.nextFares("SALE", { answers: "lost" });
    const delayed = await instance.ended(partner, till.sale());
    const { message, onLateAnswer } = instance.lastAsked("SALE");
    await bench.reversed(delayed.id, "25");
    onLateAnswer(bench.bank.receive(message));
    await instance.eventOf("late_answer", delayed.id);
    expect(bench.bank.find(delayed.id)).toBeUndefined();
    expect(await bench.ipnsOf(delayed.id)).toHaveLength(1);
  });

  test.each(["PREAUTH", "PREAUTH_COMPLETE"] as const)(
    "is reversed when it is a %s, and frees what it held",
    async (command) => {
      const till = new LedgerTill();
      if (command === "PREAUTH") {
        const preAuth = await instance.ended(partner, till.preAuth("tok_timeout"));
        await bench.reversed(preAuth.id);
        return expect(instance.run(partner, till.complete(preAuth))).rejects.toMatchObject({ code: "not_successful" });
      }
      const preAuth = await instance.ended(partner, till.preAuth());
      instance.nextFares("PREAUTH_COMPLETE", { answers: "never" });
      const first = await instance.ended(partner, till.complete(preAuth));
      expect(first).toMatchObject({ state: "ERROR", facts: { fields: { isoResponseCode: "68" } } });
      await bench.reversed(first.id);
      expect(await instance.ended(partner, till.complete(preAuth))).toMatchObject({ state: "SUCCESS" });
      expect(bench.bank.find(preAuth.id)).toMatchObject({ state: "completed" });
    },
  );

  test("parks its Reversal and alerts the operator if it is refused; the original stays locked", async () => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, till.sale());
    instance.nextFares("VOID", { answers: "never" });
    instance.nextFares("REVERSAL", { declines: "12" });
    const failed = await instance.ended(partner, till.void(sale));
    const event = await instance.eventOf("reversal_refused", failed.id);
    expect(event.detail).toEqual({ responseCode: "12" });
    expect(await bench.reversalOf(failed.id)).toMatchObject({ state: "PARKED", code: "12" });
    expect(await instance.find(partner, failed.id)).toMatchObject({ reversal: "parked" });
    await expect(instance.run(partner, till.void(sale))).rejects.toMatchObject({ status: 409, code: "in_doubt" });
    await bench.runDueNow();
    expect(await bench.reversalOf(failed.id)).toMatchObject({ state: "PARKED", tries: 1 });
  });

  test("is not reversed if its message was certainly never sent: ERROR 91", async () => {
    instance.nextFares("SALE", { answers: "not_sent" });
    const sale = await instance.ended(partner, new LedgerTill().sale());
    expect(field(sale, "isoResponseCode")).toBe("91");
    expect(await bench.reversalOf(sale.id)).toBeUndefined();
  });

  test("is not reversed if it is a Logon, which moves no money", async () => {
    instance.nextFares("LOGON", { answers: "never" });
    const logon = await instance.ended(partner, new LedgerTill().logon());
    expect(logon).toMatchObject({ state: "ERROR", facts: { fields: { isoResponseCode: "68" } } });
    expect(await bench.reversalOf(logon.id)).toBeUndefined();
    expect(await bench.ipnsOf(logon.id)).toEqual([]);
  });
});

describe("a 25 to a Reversal", async () => {
  const booksLate = { answers: { breaksAndArrivesAfterMs: 20 }, forgetsReversals: true } as const;
  // So long that no test reaches it by waiting.
  const { bench: patient, instance: first, partner: own } = await LedgerBench.ofFile({ reversalMarginMs: 3_600_000 });

  async function answered25(id: TransactionId, tries: number): Promise<void> {
    const reversal = () => patient.reversalOf(id);
    await expect.poll(reversal, { interval: 5 }).toMatchObject({ state: "PENDING", code: "25", tries });
    await patient.query("UPDATE reversals SET response_code = NULL WHERE transaction_id = $1", [id]);
  }

  /** Its original can no longer be booked: the margin is an hour. */
  async function pastTheMargin(id: TransactionId, ago = "2 hours"): Promise<void> {
    await patient.query("UPDATE reversals SET left_by = now() - $2::interval WHERE transaction_id = $1", [id, ago]);
  }

  test("is provisional while the Sale may still be booked: it is repeated, and undoes the Sale if it is", async () => {
    first.nextFares("SALE", booksLate);
    const sale = await first.ended(own, new LedgerTill().sale());
    expect(field(sale, "isoResponseCode")).toBe("68");
    await expect.poll(() => patient.bank.find(sale.id), { interval: 5 }).toBeDefined();
    await expect.poll(patient.afterDue(() => patient.reversalOf(sale.id))).toMatchObject({ state: "DONE", code: "00" });
    expect(patient.bank.find(sale.id)).toMatchObject({ state: "reversed" });
  });

  test("is waited for by the partner's REVERSAL of the timed-out Sale: 202, and no second one meanwhile", async () => {
    const till = new LedgerTill();
    first.nextFares("SALE", { answers: "lost" });
    const sale = await first.ended(own, till.sale());
    await answered25(sale.id, 1);
    const { transaction, done } = await first.run(own, till.reversal(sale));
    expect(done).toBe(false);
    await expect(first.run(own, till.reversal(sale))).rejects.toMatchObject({ status: 409, code: "in_doubt" });
    await pastTheMargin(sale.id);
    await patient.runDueNow();
    await patient.reversed(sale.id, "25");
    expect(await first.endOf(transaction)).toMatchObject({ state: "SUCCESS" });
    expect(await first.find(own, sale.id)).toMatchObject({ state: "ERROR", reversal: "done" });
  });

  test("is not final if the Reversal was sent before that moment, even if the 25 comes after it", async () => {
    first.nextFares("SALE", { answers: "lost" });
    const answer = patient.holdLink("the answer to a REVERSAL arrives");
    const sale = await first.ended(own, new LedgerTill().sale());
    await answer.reached;
    await pastTheMargin(sale.id);
    answer.go();
    await answered25(sale.id, 1);
    await patient.runDueNow();
    await patient.reversed(sale.id, "25");
  });

  test("counts whatever was answered since: a 94 then says only that the host did not look for the Sale again", async () => {
    first.nextFares("SALE", { answers: "lost" });
    const sale = await first.ended(own, new LedgerTill().sale());
    await patient.tried(sale.id, 1);
    for (const [nth, code] of ["91", "94"].entries()) {
      first.nextFares("REVERSAL", { declines: code });
      await patient.runDueNow();
      await patient.tried(sale.id, nth + 2);
    }
    await pastTheMargin(sale.id);
    first.nextFares("REVERSAL", { declines: "94" });
    await patient.runDueNow();
    await expect.poll(() => patient.reversalOf(sale.id)).toMatchObject({ state: "PARKED", code: "94" });
  });

  test("counts if it comes after its try has ended, too", async () => {
    first.nextFares("SALE", { answers: "lost" });
    first.nextFares("REVERSAL", { answers: "late" });
    const sale = await first.ended(own, new LedgerTill().sale());
    await expect.poll(() => patient.reversalOf(sale.id)).toMatchObject({ state: "PENDING", code: "25", tries: 1 });
    await patient.tried(sale.id, 1);
    await pastTheMargin(sale.id);
    first.nextFares("REVERSAL", { declines: "94" });
    await patient.runDueNow();
    await expect.poll(() => patient.reversalOf(sale.id)).toMatchObject({ state: "PARKED", code: "94" });
  });

  test("is what an operator reads until the end; otherwise the last answer, a 94 too", async () => {
    first.nextFares("SALE", { answers: "lost" });
    first.nextFares("REVERSAL", { declines: "91" });
    const sale = await first.ended(own, new LedgerTill().sale());
    await patient.tried(sale.id, 1);
    for (const [nth, { code, read }] of [
      { code: "94", read: "94" },
      { code: "25", read: "25" },
      { code: "94", read: "25" },
    ].entries()) {
      first.nextFares("REVERSAL", { declines: code });
      await patient.runDueNow();
      await patient.tried(sale.id, nth + 2);
      expect(await patient.reversalOf(sale.id)).toMatchObject({ state: "PENDING", code: read });
    }
  });

  test("is provisional for the time-out and the margin together, for as long as which the claim holds", async () => {
    const slow = await LedgerBench.open({ acquirerTimeoutMs: 3_600_000 });
    onTestFinished(() => slow.close());
    const [dying, other, whose] = [await slow.start(), await slow.start(), await slow.partner()];
    const death = dying.crashesAt({ at: "ask", phase: "before" });
    void dying.run(whose, new LedgerTill().sale(), true);
    await death;
    const answer = slow.holdLink("the answer to a REVERSAL arrives");
    await other.takeOver(whose);
    await answer.reached;
    expect(await slow.query("SELECT FROM reversals WHERE due_at > now() + interval '1 h'")).toHaveLength(1);
    answer.go();
    const reversal = async () => (await slow.query("SELECT state, response_code AS code FROM reversals"))[0];
    await expect.poll(reversal).toEqual({ state: "PENDING", code: "25" });
  });

  test("leaves the partner's REVERSAL open, and the Reversal is sent again if the Sale leaves only later", async () => {
    const till = new LedgerTill();
    const leaves = patient.holdLink("a SALE leaves");
    const sale = await first.begun(own, till.sale());
    await leaves.reached;
    first.nextFares("SALE", booksLate);
    const { transaction, done } = await first.run(own, till.reversal(sale));
    expect(done).toBe(false);
    await answered25(sale.id, 1);
    await pastTheMargin(sale.id, "30 min");
    await patient.runDueNow();
    await answered25(sale.id, 2);
    await pastTheMargin(sale.id);
    await patient.reversed(sale.id, "25");
    expect(await first.endOf(transaction)).toMatchObject({ state: "SUCCESS" });
    // As from a process that was stopped. The link breaks, and nobody is answered.
    leaves.go();
    await expect.poll(() => patient.bank.find(sale.id), { interval: 5 }).toBeDefined();
    await expect.poll(patient.afterDue(() => patient.reversalOf(sale.id))).toMatchObject({ state: "DONE", code: "00" });
    expect(patient.bank.find(sale.id)).toMatchObject({ state: "reversed" });
  });

  test.each([
    ["another host got the Sale", "second", "simulator"],
    ["nobody knows which host got the Sale", "simulator", ""],
    ["the answer does not say which host it is from", "", "simulator"],
  ])("parks it after the schedule if %s", async (_, site, originalSite) => {
    const [dying, other] = [await patient.start(), await patient.start()];
    dying.nextFares("SALE", { answers: "lost" });
    const isReversal = ({ command }: { readonly command: string }) => command === "REVERSAL";
    const death = dying.crashesAt({ at: "ask", phase: "before", when: isReversal });
    const sale = await dying.ended(own, new LedgerTill().sale());
    await death;
    expect(sale.site).toBe("simulator");
    for (const { acquirer } of [first, other]) acquirer.host = site || (undefined as never);
    onTestFinished(() => {
      first.acquirer.host = "simulator";
    });
    await patient.query("UPDATE transactions SET site = nullif($2, '') WHERE id = $1", [sale.id, originalSite]);
    await pastTheMargin(sale.id);
    for (let tries = 2; tries <= 7; tries += 1) {
      await patient.runDueNow();
      await answered25(sale.id, tries);
    }
    await patient.runDueNow();
    await expect
      .poll(() => patient.reversalOf(sale.id), { interval: 5 })
      .toMatchObject({ state: "PARKED", code: "25" });
    const refused = "SELECT detail FROM events WHERE kind = 'reversal_refused' AND subject_id = $1";
    const [event] = await patient.query<{ detail: unknown }>(refused, [sale.id]);
    expect(event?.detail).toEqual({ responseCode: "25", site, originalSite });
    expect(await first.find(own, sale.id)).toMatchObject({ state: "ERROR", reversal: "parked" });
    await other.close();
  });

  test("from another host ends the partner's REVERSAL as an ERROR once it is parked", async () => {
    const till = new LedgerTill();
    const sale = await first.ended(own, till.sale());
    moveLink();
    const denies = first.acquirer.behave(({ command }) => (command === "REVERSAL" ? { declines: "25" } : undefined));
    onTestFinished(denies);
    const reversal = await first.begun(own, till.reversal(sale));
    await answered25(sale.id, 1);
    await patient.query("UPDATE reversals SET tries = 7 WHERE transaction_id = $1", [sale.id]);
    await pastTheMargin(sale.id);
    await patient.runDueNow();
    const ended = await first.endOf(reversal);
    expect(ended).toMatchObject({ state: "ERROR", facts: { fields: { isoResponseCode: "25" } } });
  });

  test("is judged by the host that really got the Sale: it is noted again if the link has moved", async () => {
    const leaves = patient.holdLink("a SALE leaves");
    const begun = await first.begun(own, new LedgerTill().sale());
    expect(begun.site).toBe("simulator");
    await leaves.reached;
    moveLink();
    leaves.go();
    expect(await first.endOf(begun)).toMatchObject({ state: "SUCCESS", site: "second" });
  });

  test("does not come to a Sale that was reversed before its link moved: it leaves no more", async () => {
    const [till, leaves] = [new LedgerTill(), patient.holdLink("a SALE leaves")];
    const request = till.sale();
    const begun = await first.begun(own, request);
    await leaves.reached;
    await first.begun(own, till.reversal(begun));
    await first.endOf(begun);
    const running = first.ended(own, request);
    moveLink();
    leaves.go();
    await running;
    expect(patient.bank.find(begun.id)).toBeUndefined();
  });

  function moveLink(): void {
    first.acquirer.host = "second";
    onTestFinished(() => {
      first.acquirer.host = "simulator";
    });
  }
});

describe("a late answer", () => {
  test.each([
    ["is", approval],
    ["may be", { ...approval, responseCode: "85", isAmbiguous: true }],
  ])("that %s an approval repeats the Reversal, changes no status and sends no IPN", async (_, late) => {
    instance.nextFares("SALE", { answers: "never" });
    const sale = await instance.ended(partner, new LedgerTill().sale());
    await bench.reversed(sale.id);
    instance.lastAsked("SALE").onLateAnswer(late);
    await instance.eventOf("late_approval", sale.id);
    await expect.poll(() => bench.reversalOf(sale.id)).toMatchObject({ state: "DONE", tries: 3 });
    expect(await instance.find(partner, sale.id)).toMatchObject({ state: "ERROR", reversal: "done" });
    expect(await bench.ipnsOf(sale.id)).toEqual([sale.facts]);
    expect(bench.bank.find(sale.id)).toMatchObject({ state: "reversed" });
  });

  test("that is an approval repeats the Reversal, also if the database is away for seconds then", async () => {
    instance.nextFares("SALE", { answers: "never" });
    const sale = await instance.ended(partner, new LedgerTill().sale());
    await bench.reversed(sale.id);
    await bench.query("ALTER TABLE reversals RENAME TO reversals_away");
    const failures = () => instance.logged.filter((text) => text.includes("could not be repeated")).length;
    const failed = expect.poll(failures).toBe(4);
    instance.lastAsked("SALE").onLateAnswer(approval);
    await failed;
    await bench.query("ALTER TABLE reversals_away RENAME TO reversals");
    await expect.poll(() => bench.reversalOf(sale.id)).toMatchObject({ state: "DONE", tries: 3 });
    expect(bench.bank.find(sale.id)).toMatchObject({ state: "reversed" });
  });

  test("that arrives during the first Reversal causes it to be sent again", async () => {
    const answered: string[] = [];
    bench.onLink = async (what) => {
      if (what !== "the answer to a REVERSAL arrives") return;
      const { message } = instance.lastAsked("REVERSAL");
      answered.push(message.transactionId);
      if (answered.length > 1) return;
      instance.lastAsked("SALE").onLateAnswer(approval);
      // The answer to the first Reversal predates the approval.
      const tries = async () => (await bench.reversalOf(message.transactionId as TransactionId))?.tries;
      await expect.poll(tries, { interval: 5 }).toBeGreaterThan(1);
    };
    instance.nextFares("SALE", { answers: "never" });
    const sale = await instance.ended(partner, new LedgerTill().sale());
    await expect.poll(() => answered).toEqual([sale.id, sale.id]);
    bench.onLink = undefined;
    await bench.reversed(sale.id);
  });

  test("that declines is recorded, and repeats nothing", async () => {
    instance.nextFares("SALE", { declines: "51", answers: "late" });
    const sale = await instance.ended(partner, new LedgerTill().sale());
    const event = await instance.eventOf("late_answer", sale.id);
    expect(event.detail).toEqual({ responseCode: "51" });
    await bench.reversed(sale.id);
    expect(await bench.reversalOf(sale.id)).toMatchObject({ tries: 1 });
    expect(field(await instance.find(partner, sale.id), "isoResponseCode")).toBe("68");
  });
});

test("a Reversal that is retried for long is reported once, and retried further", async () => {
  const fails = instance.acquirer.behave(({ command }) => (command === "REVERSAL" ? { declines: "96" } : undefined));
  const sale = await instance.ended(partner, new LedgerTill().sale("tok_timeout"));
  for (let tries = 1; tries <= 10; tries += 1) {
    await expect
      .poll(() => bench.reversalOf(sale.id), { interval: 5 })
      .toMatchObject({ state: "PENDING", tries, code: "96" });
    await bench.query("UPDATE reversals SET response_code = NULL WHERE transaction_id = $1", [sale.id]);
    await bench.runDueNow();
  }
  fails();
  await bench.runDueNow();
  await bench.reversed(sale.id);
  const told = instance.events.filter(({ kind, subjectId }) => kind === "reversal_late" && subjectId === sale.id);
  expect(told).toMatchObject([{ detail: { tries: 8, responseCode: "96" } }]);
});

test("a Reversal is reported as late although the instance that sent the eighth try died", async () => {
  const other = await bench.start();
  const fails = [instance, other].map(({ acquirer }) =>
    acquirer.behave(({ command }) => (command === "REVERSAL" ? { declines: "96" } : undefined)),
  );
  const sale = await instance.ended(partner, new LedgerTill().sale("tok_timeout"));
  for (const tries of [1, 9, 10, 11]) {
    await expect
      .poll(() => bench.reversalOf(sale.id), { interval: 5 })
      .toMatchObject({ state: "PENDING", tries, code: "96" });
    if (tries === 1) await bench.query("UPDATE reversals SET tries = 8 WHERE transaction_id = $1", [sale.id]);
    await bench.query("UPDATE reversals SET response_code = NULL WHERE transaction_id = $1", [sale.id]);
    if (tries < 11) await bench.runDueNow();
  }
  for (const end of fails) end();
  await bench.runDueNow();
  await bench.reversed(sale.id);
  await other.close();
  const events = [...instance.events, ...other.events];
  const told = events.filter(({ kind, subjectId }) => kind === "reversal_late" && subjectId === sale.id);
  expect(told).not.toEqual([]);
  // The database keeps one of each id.
  expect(new Set(told.map(({ id }) => id)).size).toBe(1);
  expect(told[0]?.id).toBeDefined();
});

test("a stop waits for no Reversal that the database does not take", async () => {
  const leaving = await bench.start();
  leaving.life.breaksAt("end", () => true, new Error("the database is away"), 1_000);
  const sale = await leaving.ended(partner, new LedgerTill().sale("tok_timeout"));
  await expect.poll(() => leaving.logged.join()).toContain("could not be ended yet");
  await leaving.close();
  expect(await bench.reversalOf(sale.id)).toMatchObject({ state: "PENDING" });
  await bench.runDueNow();
  await bench.reversed(sale.id);
});

test("a refused Reversal alerts although its instance dies with the write", async () => {
  const own = await LedgerBench.open();
  onTestFinished(() => own.close());
  const dying = await own.start();
  dying.nextFares("REVERSAL", { declines: "12" });
  const death = dying.crashesAt({ at: "end", phase: "after" });
  const sale = await dying.ended(await own.partner(), new LedgerTill().sale("tok_timeout"));
  await death;
  expect(await own.reversalOf(sale.id)).toMatchObject({ state: "PARKED", code: "12" });
  expect(await own.query("SELECT kind, detail FROM events WHERE subject_id = $1", [sale.id])).toEqual([
    { kind: "reversal_refused", detail: { responseCode: "12" } },
  ]);
});

test.each(["08", "10", "11", "16"])(
  "an approval by %s becomes an ERROR with that code, and is reversed",
  async (code) => {
    const sale = await instance.ended(partner, new LedgerTill().sale(`tok_approve_${code}`));
    expect(sale).toMatchObject({
      state: "ERROR",
      facts: { fields: { isoResponseCode: code, refId: expect.stringMatching(/^\d{12}$/) } },
    });
    await bench.reversed(sale.id);
    expect(bench.bank.find(sale.id)).toMatchObject({ state: "reversed" });
    expect(await bench.ipnsOf(sale.id)).toEqual([sale.facts]);
  },
);

describe("a partner's REVERSAL", () => {
  test("undoes a successful Sale, by its id or its reqId, without an IPN of its own", async () => {
    const till = new LedgerTill();
    for (const name of ["id", "reqId"] as const) {
      const request = till.sale();
      const sale = await instance.ended(partner, request);
      const reversal = await instance.ended(
        partner,
        name === "id" ? till.reversal(sale) : till.reversalOf(request.reqId.toUpperCase()),
      );
      expect(reversal).toMatchObject({ command: "REVERSAL", state: "SUCCESS" });
      expect(field(reversal, "isoResponseCode")).toBe("00");
      expect(field(reversal, "traceNo")).toBe(field(sale, "traceNo"));
      expect(bench.bank.find(sale.id)).toMatchObject({ state: "reversed" });
      expect(await instance.find(partner, sale.id)).toMatchObject({ state: "SUCCESS", reversal: "done" });
      expect(await bench.ipnsOf(sale.id)).toHaveLength(1);
      expect(await bench.ipnsOf(reversal.id)).toEqual([]);
      await expect(instance.run(partner, till.void(sale))).rejects.toMatchObject({ code: "already_reversed" });
      await expect(instance.run(partner, till.reversal(sale))).rejects.toMatchObject({ code: "already_reversed" });
    }
  });

  test.each(["find", "queue"])("is carried out although the database was away when it asked it to %s", async (call) => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, till.sale());
    let calls = 0;
    // The first read of the original is before INIT: it refuses the command, and nothing is owed.
    const isAfterInit = () => {
      calls += 1;
      return call === "queue" || calls === 2;
    };
    const away = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
    instance.life.breaksAt(call, isAfterInit, away);
    const { transaction } = await instance.run(partner, till.reversal(sale));
    expect(await instance.endOf(transaction)).toMatchObject({ command: "REVERSAL", state: "SUCCESS" });
    expect(bench.bank.find(sale.id)).toMatchObject({ state: "reversed" });
  });

  test.each([
    ["answered 00", undefined, "SUCCESS"],
    ["refused", "12", "ERROR"],
  ] as const)("that is %s ends although the answer to its COMMIT is lost", async (_, declines, state) => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, till.sale());
    if (declines !== undefined) instance.nextFares("REVERSAL", { declines });
    instance.life.losesAnswerOf("end", Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }));
    const { transaction } = await instance.run(partner, till.reversal(sale));
    expect(await instance.endOf(transaction)).toMatchObject({ command: "REVERSAL", state });
    expect(await bench.reversalOf(sale.id)).toMatchObject({ tries: 1 });
    if (declines !== undefined) await instance.eventOf("reversal_refused", sale.id);
  });

  test("undoes a PreAuth, and a PreAuth-Complete, which leaves its PreAuth completed", async () => {
    const till = new LedgerTill();
    const preAuth = await instance.ended(partner, till.preAuth());
    await instance.ended(partner, till.reversal(preAuth));
    expect(bench.bank.find(preAuth.id)).toMatchObject({ state: "reversed" });
    const other = await instance.ended(partner, till.preAuth());
    const complete = await instance.ended(partner, till.complete(other));
    await instance.ended(partner, till.reversal(complete));
    expect(bench.bank.find(complete.id)).toMatchObject({ state: "reversed" });
    await expect(instance.run(partner, till.complete(other))).rejects.toMatchObject({ code: "already_completed" });
  });

  test.each([
    ["done", "SUCCESS", "reversed"],
    ["stands", "ERROR", "stands"],
  ])(
    "of a Sale whose own Reversal is refused meanwhile ends when that is %s, and not before",
    async (end, state, sold) => {
      const till = new LedgerTill();
      const answer = bench.holdLink("a SALE leaves");
      instance.nextFares("SALE", { answers: "never" });
      const sale = await instance.begun(partner, till.sale());
      await answer.reached;
      const begin = instance.life.holdsAnswerOf("begin");
      const reversing = instance.ended(partner, till.reversal(sale));
      await begin.reached;
      const refuses = instance.acquirer.behave((to) => (to.command === "REVERSAL" ? { declines: "12" } : undefined));
      answer.go();
      // On a slow machine the acquirer's answer may come after its time-out: then the Reversal is sent again.
      const read = bench.afterDue(() => instance.find(partner, sale.id));
      await expect.poll(read).toMatchObject({ state: "ERROR", reversal: "parked" });
      expect(bench.bank.find(sale.id)).toMatchObject({ state: "stands" });
      refuses();
      const queue = instance.life.holdsCallOf("queue");
      begin.release();
      await queue.reached;
      if (end === "stands") await postgresReversals(bench.connections.homes).letStand(partner.id, sale.id);
      queue.release();
      await expect.poll(read).toMatchObject({ reversal: end });
      expect(await reversing).toMatchObject({ state });
      expect(bench.bank.find(sale.id)).toMatchObject({ state: sold });
    },
  );

  test("of a Sale in flight ends it at once as ERROR 68; its late approval repeats the Reversal", async () => {
    const till = new LedgerTill();
    const answer = bench.holdLink("the answer to a SALE arrives");
    const sale = await instance.begun(partner, till.sale());
    await answer.reached;
    const reversal = await instance.ended(partner, till.reversal(sale));
    expect(reversal).toMatchObject({ state: "SUCCESS" });
    expect(await instance.find(partner, sale.id)).toMatchObject({ state: "ERROR", reversal: "done" });
    answer.go();
    await instance.eventOf("late_approval", sale.id);
    await expect.poll(() => bench.reversalOf(sale.id)).toMatchObject({ state: "DONE", tries: 3 });
    expect(bench.bank.find(sale.id)).toMatchObject({ state: "reversed" });
    const [ipn, ...others] = await bench.ipnsOf(sale.id);
    expect(ipn?.fields).toMatchObject({ status: "ERROR", isoResponseCode: "68" });
    expect(others).toEqual([]);
  });

  test("of a PreAuth-Complete in flight holds its PreAuth until the acquirer has answered", async () => {
    const till = new LedgerTill();
    const preAuth = await instance.ended(partner, till.preAuth());
    const answer = bench.holdLink("the answer to a PREAUTH_COMPLETE arrives");
    const complete = await instance.begun(partner, till.complete(preAuth));
    await answer.reached;
    instance.nextFares("REVERSAL", { answers: "lost" });
    const reversal = await instance.begun(partner, till.reversal(complete));
    expect(await instance.endOf(complete)).toMatchObject({ state: "ERROR" });
    await expect(instance.run(partner, till.complete(preAuth))).rejects.toMatchObject({ code: "in_doubt" });
    answer.go();
    await expect.poll(bench.afterDue(() => instance.find(partner, reversal.id))).toMatchObject({ state: "SUCCESS" });
  });

  test("of a Sale that is declined meanwhile succeeds: nothing is charged", async () => {
    const till = new LedgerTill();
    const answer = bench.holdLink("the answer to a SALE arrives");
    instance.nextFares("SALE", { declines: "51" });
    const sale = await instance.begun(partner, till.sale());
    await answer.reached;
    const begin = instance.life.holdsAnswerOf("begin");
    const reversing = instance.ended(partner, till.reversal(sale));
    await begin.reached;
    answer.go();
    expect(await instance.endOf(sale)).toMatchObject({ state: "ERROR", reversal: null });
    begin.release();
    expect(await reversing).toMatchObject({ state: "SUCCESS" });
  });

  test("that arrived before its command makes the command refused, and the acquirer is not asked", async () => {
    const till = new LedgerTill();
    const late = till.sale();
    const reversal = till.reversalOf(late.reqId.toUpperCase());
    expect(await instance.ended(partner, reversal)).toMatchObject({ state: "SUCCESS" });
    const booked = bench.bank.all().length;
    await expect(instance.run(partner, late)).rejects.toMatchObject({ status: 409, code: "reversed_before_arrival" });
    expect(bench.bank.all()).toHaveLength(booked);
    expect(await instance.ended(partner, reversal)).toMatchObject({ state: "SUCCESS" });
    expect(await instance.ended(partner, till.reversalOf(late.reqId))).toMatchObject({ state: "SUCCESS" });
    const others = await bench.partner();
    expect(await instance.ended(others, late)).toMatchObject({ state: "SUCCESS" });
  });

  test("and its command concurrently: either the command is refused, or it is reversed", async () => {
    // A Reversal that overtakes its command is answered 25, and sent again when that is due.
    const watched = await LedgerBench.open({ watchesDue: true });
    onTestFinished(() => watched.close());
    const [seller, whose, till] = [await watched.start(), await watched.partner(), new LedgerTill()];
    for (let round = 0; round < 10; round += 1) {
      const request = till.sale();
      const [sale, reversal] = await Promise.allSettled([
        seller.ended(whose, request),
        seller.ended(whose, till.reversalOf(request.reqId)),
      ]);
      expect(reversal).toMatchObject({ status: "fulfilled", value: { state: "SUCCESS" } });
      if (sale.status === "rejected") expect(sale.reason).toMatchObject({ code: "reversed_before_arrival" });
      else await expect.poll(() => watched.bank.find(sale.value.id)?.state ?? "reversed").toBe("reversed");
    }
  });

  test("that the acquirer refuses ends as an ERROR, and the Sale stays locked and counted", async () => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, till.sale());
    instance.nextFares("REVERSAL", { declines: "12" });
    const reversal = await instance.ended(partner, till.reversal(sale));
    expect(reversal).toMatchObject({ state: "ERROR", facts: { fields: { isoResponseCode: "12" } } });
    await expect(instance.run(partner, till.void(sale))).rejects.toMatchObject({ code: "in_doubt" });
    const settled = await instance.ended(partner, till.settlement());
    expect(settled).toMatchObject({ state: "SUCCESS", facts: { fields: { saleQuantity: "1" } } });
  });

  test("whose end the database did not take at once ends all the same", async () => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, till.sale());
    const { transaction } = await instance.run(partner, till.reversal(sale), true);
    instance.life.breaksAt("complete", ({ id }: { id: string }) => id === transaction.id, new Error("it is away"));
    await expect.poll(bench.afterDue(() => instance.find(partner, transaction.id))).toMatchObject({ state: "SUCCESS" });
  });

  test("is not answered before the acquirer answers: 202, and it ends when that arrives", async () => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, till.sale());
    const answered = instance.acquirer.behave(({ command }) =>
      command === "REVERSAL" ? { answers: "lost" } : undefined,
    );
    const { transaction } = await instance.run(partner, till.reversal(sale), true);
    await expect.poll(() => bench.reversalOf(sale.id)).toMatchObject({ state: "PENDING", tries: 1 });
    expect((await instance.find(partner, transaction.id)).state).toBe("INIT");
    answered();
    await expect.poll(bench.afterDue(() => instance.find(partner, transaction.id))).toMatchObject({ state: "SUCCESS" });
  });

  test("is refused for a voided, settled or declined one, another partner's, or no payment", async () => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, till.sale());
    const voiding = await instance.ended(partner, till.void(sale));
    const declined = await instance.ended(partner, till.sale("tok_decline_05"));
    const settled = await instance.ended(partner, till.sale());
    const other = await instance.ended(await bench.partner(), till.sale());
    await expect(instance.run(partner, till.reversal(sale))).rejects.toMatchObject({ code: "already_voided" });
    await expect(instance.run(partner, till.reversal(voiding))).rejects.toMatchObject({ code: "not_reversible" });
    await expect(instance.run(partner, till.reversal(declined))).rejects.toMatchObject({ code: "not_successful" });
    await expect(instance.run(partner, till.reversal(other))).rejects.toMatchObject({ status: 404, code: "not_found" });
    await instance.ended(partner, till.settlement());
    await expect(instance.run(partner, till.reversal(settled))).rejects.toMatchObject({ code: "batch_settled" });
  });
});
