import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { AcquirerMessage, UnmatchedAnswer } from "../../acquirer/acquirer.ts";
import { bookUnmatched, field, LedgerBench, LedgerTill } from "../ledger.fixture.ts";
import type { Transaction } from "../store.ts";

const { bench, instance, partner } = await LedgerBench.ofFile();

const entry = (sale: Transaction) => ({ reqId: field(sale, "reqId"), refNo: field(sale, "refId") });

/** Records all messages to the acquirer for one terminal, in order. */
function watch(till: LedgerTill, on = instance): { readonly asked: AcquirerMessage[]; ends(): void } {
  const asked: AcquirerMessage[] = [];
  const ends = on.acquirer.behave((message) => {
    if (message.tid === till.tid) asked.push(message);
    return undefined;
  });
  return { asked, ends };
}

/** Ends a settlement that is due again by the clock. */
async function endWhenDue({ id }: Pick<Transaction, "id">): Promise<Transaction> {
  const state = async () => {
    instance.settler.wake();
    return (await instance.find(partner, id)).state;
  };
  await expect.poll(state).not.toBe("INIT");
  return instance.find(partner, id);
}

describe("a settlement", () => {
  test("counts Sales and Completes, voided ones on both sides, and lists those that are not voided", async () => {
    const till = new LedgerTill();
    const standing = await instance.ended(partner, till.sale("tok_approve", "12.50", "USD"));
    const voided = await instance.ended(partner, till.sale("tok_approve", "7.05", "USD"));
    await instance.ended(partner, till.void(voided));
    const reversed = await instance.ended(partner, till.sale("tok_approve", "99", "USD"));
    await instance.ended(partner, till.reversal(reversed));
    await instance.ended(partner, till.sale("tok_decline_51", "5", "USD"));
    await instance.ended(partner, till.preAuth("tok_approve", "50", "USD"));
    const completed = await instance.ended(partner, till.preAuth("tok_approve", "50", "USD"));
    const complete = await instance.ended(partner, till.complete(completed, "20.3"));
    const request = { ...till.settlement(), merchantTransId: "day-1", extraData: "{}", deviceId: "SN-1" };
    const settled = await instance.ended(partner, request);
    expect(settled.facts).toMatchObject({
      kind: "settlement",
      currency: "USD",
      fields: {
        batchNo: "000001",
        status: "SUCCESS",
        quantity: "2",
        saleQuantity: "3",
        saleTotalAmount: "39.85",
        voidQuantity: "1",
        voidTotalAmount: "7.05",
        merchantTransId: "day-1",
        extraData: "{}",
        deviceId: "SN-1",
        reqId: request.reqId,
        tid: till.tid,
        mid: till.mid,
      },
      settlementList: [entry(standing), entry(complete)],
    });
    expect(await bench.ipnsOf(settled.id)).toEqual([settled.facts]);
    expect(settled.facts.fields).toMatchObject({ isoResponseCode: "00", refId: expect.stringMatching(/^\d{12}$/) });
    expect(bench.bank.settledBatch(till.mid, till.tid, "USD")).toMatchObject({
      batchNo: "000001",
      currency: "USD",
      saleQuantity: 3,
      saleTotalMinor: 3_985n,
      voidQuantity: 1,
      voidTotalMinor: 705n,
    });
    expect(field(await instance.ended(partner, till.sale()), "batchNo")).toBe("000002");
  });

  test("of an empty batch settles with zeros, also on an unknown terminal", async () => {
    const till = new LedgerTill();
    for (const batchNo of ["000001", "000002"]) {
      const settled = await instance.ended(partner, till.settlement());
      expect(settled).toMatchObject({
        state: "SUCCESS",
        facts: {
          fields: { batchNo, quantity: "0", saleTotalAmount: "0", voidQuantity: "0", voidTotalAmount: "0" },
          settlementList: [],
        },
      });
      expect(Object.hasOwn(settled.facts, "currency")).toBe(false);
    }
  });

  test("has exact sums beyond the range of a number", async () => {
    const till = new LedgerTill();
    const amounts = Array.from({ length: 12 }, (_, index) => `99999999999${index % 10}`);
    for (const amount of amounts) await instance.ended(partner, till.sale("tok_approve", amount));
    const settled = await instance.ended(partner, till.settlement());
    const sum = amounts.reduce((total, amount) => total + BigInt(amount), 0n);
    expect(settled.facts.fields).toMatchObject({ saleTotalAmount: String(sum), saleQuantity: "12" });
  });

  test("holds off money commands and a second settlement, with Retry-After; a Logon is accepted", async () => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, till.sale());
    const preAuth = await instance.ended(partner, till.preAuth());
    const refusals = Promise.withResolvers<void>();
    bench.onLink = (what) => (what === "a SETTLEMENT leaves" ? refusals.promise : Promise.resolve());
    onTestFinished(() => {
      bench.onLink = undefined;
    });
    const settling = await instance.begun(partner, till.settlement());
    const requests = [till.sale(), till.preAuth(), till.void(sale), till.complete(preAuth), till.void(preAuth)];
    for (const request of [...requests, till.settlement(), till.batchUpload(), till.reversal(sale)]) {
      const refused = instance.run(partner, request);
      await expect(refused).rejects.toMatchObject({ status: 409, code: "settlement_in_progress", retryAfterS: 5 });
    }
    expect(await instance.ended(partner, till.logon())).toMatchObject({ state: "SUCCESS" });
    expect(await instance.ended(partner, new LedgerTill().sale())).toMatchObject({ state: "SUCCESS" });
    refusals.resolve();
    expect(await instance.endOf(settling)).toMatchObject({ state: "SUCCESS" });
    const afterwards = await instance.ended(partner, requests[0] ?? till.sale());
    expect(field(afterwards, "batchNo")).toBe("000002");
    await expect(instance.run(partner, till.void(sale))).rejects.toMatchObject({ code: "batch_settled" });
  });

  test("waits for commands in flight and for unanswered Reversals", async () => {
    const till = new LedgerTill();
    let answersReversals = false;
    const silence = instance.acquirer.behave(({ command, tid }) =>
      command === "REVERSAL" && tid === till.tid && !answersReversals ? { answers: "lost" } : undefined,
    );
    const { asked, ends } = watch(till);
    const answer = bench.holdLink("the answer to a SALE arrives");
    const slow = await instance.begun(partner, till.sale());
    await answer.reached;
    const timedOut = await instance.begun(partner, till.sale("tok_timeout"));
    const postponed = vi.spyOn(instance.settlements, "postpone");
    const settling = await instance.begun(partner, till.settlement());
    const waitsMs = () => postponed.mock.calls.flatMap(([{ id }, ms]) => (id === settling.id ? [ms] : []));
    await expect.poll(() => waitsMs().slice(0, 3)).toEqual([100, 200, 300]);
    postponed.mockRestore();
    await instance.endOf(timedOut);
    for (const tries of [1, 2]) {
      await bench.tried(timedOut.id, tries);
      if (tries === 1) await bench.runDueNow();
    }
    answer.go();
    await instance.endOf(slow);
    await bench.runDueNow();
    await bench.tried(timedOut.id, 3);
    expect((await instance.find(partner, settling.id)).state).toBe("INIT");
    expect(asked.map(({ command }) => command)).not.toContain("SETTLEMENT");
    answersReversals = true;
    await bench.runDueNow();
    await bench.reversed(timedOut.id);
    // One that is being sent would be claimed, and sent, a second time.
    const looks = async () => {
      await bench.query("UPDATE settlements SET due_at = now() WHERE step = 'waiting'");
      instance.settler.wake();
      return instance.find(partner, settling.id);
    };
    await expect
      .poll(looks, { interval: 100 })
      .toMatchObject({ state: "SUCCESS", facts: { fields: { saleQuantity: "1", saleTotalAmount: "150000" } } });
    ends();
    silence();
    // Its looks at the terminal were no tries of the message.
    // A Reversal that was made due while it was on its way is sent again, perhaps after it.
    expect(asked.filter(({ command }) => command === "SETTLEMENT")).toMatchObject([{ repeat: false }]);
    expect(bench.bank.find(timedOut.id)).toMatchObject({ state: "reversed" });
  });

  test.each(["58", "91"])(
    "that is refused with %s reopens the batch, with an event that has the totals",
    async (code) => {
      const till = new LedgerTill();
      const sale = await instance.ended(partner, till.sale());
      instance.nextFares("SETTLEMENT", { declines: code });
      const refused = await instance.ended(partner, till.settlement());
      expect(refused).toMatchObject({
        state: "ERROR",
        facts: {
          fields: { status: "ERROR", batchNo: "000001", saleQuantity: "1", saleTotalAmount: "150000", quantity: "1" },
          settlementList: [],
        },
      });
      expect(refused.facts.fields["isoResponseCode"]).toBe(code);
      const kept = await instance.find(partner, refused.id);
      expect(kept.facts.fields["isoResponseCode"]).toBe(code);
      expect(await instance.eventOf("settlement_refused", refused.id)).toMatchObject({
        detail: { tid: till.tid, batchNo: "000001", responseCode: code },
      });
      expect(await bench.ipnsOf(refused.id)).toEqual([refused.facts]);
      const more = await instance.ended(partner, till.sale());
      expect(field(more, "batchNo")).toBe("000001");
      await instance.ended(partner, till.void(sale));
      const settled = await instance.ended(partner, till.settlement());
      expect(settled.facts).toMatchObject({
        fields: { batchNo: "000001", saleQuantity: "2", voidQuantity: "1" },
        settlementList: [entry(more)],
      });
    },
  );

  test("that is not answered stays CLOSING, is repeated unchanged, and its IPN follows the outcome", async () => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, till.sale());
    let silent = true;
    const silence = instance.acquirer.behave(({ command, tid }) =>
      command === "SETTLEMENT" && tid === till.tid && silent ? { answers: "never" } : undefined,
    );
    const { asked, ends } = watch(till);
    const settling = await instance.begun(partner, till.settlement());
    const unanswered = () => asked.filter(({ command }) => command === "SETTLEMENT").length;
    for (const times of [1, 2, 3, 4]) {
      await expect.poll(unanswered).toBe(times);
      expect(await instance.find(partner, settling.id)).toMatchObject({ state: "INIT" });
      await expect(instance.run(partner, till.sale())).rejects.toMatchObject({ code: "settlement_in_progress" });
      expect(await bench.ipnsOf(settling.id)).toEqual([]);
      // It is due again once its timeout has passed, so the test need not wait for the clock.
      const noted = () =>
        bench.query("SELECT FROM settlements WHERE id = $1 AND due_at < now() + interval '6 s'", [settling.id]);
      if (times < 4) await expect.poll(noted).toHaveLength(1);
      if (times < 4) await bench.runDueNow();
    }
    expect(await instance.eventOf("settlement_unanswered", settling.id)).toMatchObject({
      detail: { tid: till.tid, step: "sending", tries: 4 },
    });
    silent = false;
    await expect
      .poll(bench.afterDue(() => instance.find(partner, settling.id)))
      .toMatchObject({ state: "SUCCESS", facts: { settlementList: [entry(sale)] } });
    ends();
    silence();
    const [first, ...repeats] = asked;
    expect(first).toMatchObject({ repeat: false });
    for (const repeated of repeats) expect(repeated).toEqual({ ...first, repeat: true });
    expect(await bench.ipnsOf(settling.id)).toHaveLength(1);
    expect(await bench.reversalOf(settling.id)).toBeUndefined();
  });
});

test("a settlement that was not answered is not refused by an acquirer that cannot say now", async () => {
  const till = new LedgerTill();
  const sale = await instance.ended(partner, till.sale());
  // The bank settles the batch.
  instance.nextFares("SETTLEMENT", { answers: "never" });
  const settling = await instance.begun(partner, till.settlement());
  const postponed = "SELECT FROM settlements WHERE id = $1 AND step = 'sending' AND due_at < now() + interval '6 s'";
  await expect.poll(() => bench.query(postponed, [settling.id])).toHaveLength(1);
  const busy = { responseCode: "91", approveCode: "", refId: "", tc: "" };
  const asked = vi.spyOn(instance.acquirer, "ask").mockResolvedValueOnce(busy);
  onTestFinished(() => asked.mockRestore());
  const ended = await endWhenDue(settling);
  expect(asked).toHaveBeenCalledTimes(2);
  expect(ended).toMatchObject({ state: "SUCCESS", facts: { settlementList: [entry(sale)] } });
});

test("a settlement that is answered after its time-out ends by that answer", async () => {
  const till = new LedgerTill();
  await instance.ended(partner, till.sale());
  instance.nextFares("SETTLEMENT", { answers: "late" });
  const { asked, ends } = watch(till);
  expect(await instance.ended(partner, till.settlement())).toMatchObject({ state: "SUCCESS" });
  ends();
  expect(asked.map(({ command }) => command)).toEqual(["SETTLEMENT"]);
});

describe("a settlement that is aborted while its answer is on the way", () => {
  /** @param meanwhile after the abort, before the answer arrives; a Sale does not leave before */
  async function abortedLate(till: LedgerTill, meanwhile: () => Promise<unknown>): Promise<Transaction> {
    const arrived = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<void>();
    const kept = Promise.withResolvers<void>();
    bench.watchLink(async (what) => {
      if (what === "a SALE leaves") await kept.promise;
      if (!what.includes("answer to a SETTLEMENT")) return;
      arrived.resolve();
      await aborted.promise;
    });
    const settling = await instance.begun(partner, till.settlement());
    await arrived.promise;
    expect(await instance.settler.abort(partner.id, settling.id)).toBe(true);
    await meanwhile();
    aborted.resolve();
    expect(await instance.endOf(settling)).toMatchObject({
      state: "ERROR",
      facts: { fields: { isoResponseCode: "96" } },
    });
    await instance.eventOf("settlement_late", settling.id);
    kept.resolve();
    bench.onLink = undefined;
    return settling;
  }

  test("stays ERROR 96; its batch is closed, and the next settlement reports it without asking", async () => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, till.sale());
    const settling = await abortedLate(till, async () => undefined);
    const { detail } = await instance.eventOf("settlement_late", settling.id);
    expect(detail).toMatchObject({ tid: till.tid, batchNo: "000001", batch: "closed", responseCode: "00" });
    expect(await instance.settler.abort(partner.id, settling.id)).toBe(false);
    // The acquirer has settled it: there is no doubt that a person could resolve.
    expect(await instance.settlements.resolveLate(partner.id, settling.id)).toBe(false);
    const next = await instance.ended(partner, till.sale());
    expect(field(next, "batchNo")).toBe("000002");
    await expect(instance.run(partner, till.void(sale))).rejects.toMatchObject({ code: "batch_settled" });
    const { asked, ends } = watch(till);
    const reported = await instance.ended(partner, till.settlement());
    expect(asked).toEqual([]);
    expect(reported).toMatchObject({
      state: "SUCCESS",
      facts: {
        fields: { batchNo: "000001", saleQuantity: "1", isoResponseCode: "00", refId: detail["refId"] },
        settlementList: [entry(sale)],
      },
    });
    expect(await bench.ipnsOf(reported.id)).toEqual([reported.facts]);
    const [batch] = await bench.query("SELECT settlement_id FROM batches WHERE tid = $1", [till.tid]);
    expect(batch).toEqual({ settlement_id: reported.id });
    const settled = await instance.ended(partner, till.settlement());
    ends();
    expect(asked).toMatchObject([{ command: "SETTLEMENT", batchNo: "000002" }]);
    expect(settled.facts).toMatchObject({ fields: { batchNo: "000002" }, settlementList: [entry(next)] });
  });

  test("leaves a batch in doubt that something has entered since: 409 until an operator resolves it", async () => {
    const till = new LedgerTill();
    await instance.ended(partner, till.sale());
    const settling = await abortedLate(till, () => instance.begun(partner, till.sale()));
    expect(await instance.eventOf("settlement_late", settling.id)).toMatchObject({ detail: { batch: "in_doubt" } });
    for (const request of [till.settlement(), till.batchUpload()]) {
      await expect(instance.run(partner, request)).rejects.toMatchObject({ status: 409, code: "settlement_in_doubt" });
    }
    expect(field(await instance.ended(partner, till.sale()), "batchNo")).toBe("000001");
    expect(await instance.settlements.resolveLate(partner.id, settling.id)).toBe(true);
    expect(await instance.settlements.resolveLate(partner.id, settling.id)).toBe(false);
    const { asked, ends } = watch(till);
    const again = await instance.ended(partner, till.settlement());
    ends();
    expect(field(again, "batchNo")).toBe("000001");
    expect(asked[0]).toMatchObject({ command: "SETTLEMENT" });
  });
});

/** The acquirer's 0510 to a message that this process has not sent, or no longer knows. */
function strayAnswer({ tid, mid, traceNo, atMs }: AcquirerMessage): UnmatchedAnswer {
  return {
    traceNo,
    ...{ tid, responseCode: "00", refId: "000000000510", approveCode: "", tc: "", isSettlement: true, known: {} },
    mayAnswer: (asked) => asked.mid === mid && asked.traceNo === traceNo && asked.atMs === atMs,
  };
}

describe("an answer to a settlement whose process has died", () => {
  /** Sent and not answered, by a process that has died since, and then aborted if the test says so. */
  async function sentBefore(till: LedgerTill, isUploaded = false): Promise<[Transaction, AcquirerMessage]> {
    const before = await bench.start();
    if (isUploaded) before.nextFares("SETTLEMENT", { declines: "95" });
    before.acquirer.behave((message) =>
      message.command === "SETTLEMENT" && message.afterUpload === isUploaded ? { answers: "never" } : undefined,
    );
    const settling = await before.begun(partner, till.settlement());
    const sent = () => before.lastAsked("SETTLEMENT").message;
    await expect.poll(sent).toMatchObject({ afterUpload: isUploaded });
    await before.crash();
    // The table knows microseconds, and the message milliseconds.
    await bench.query(
      `UPDATE settlements SET numbered_at = date_trunc('milliseconds', numbered_at) + interval '0.9 ms' WHERE tid = $1`,
      [till.tid],
    );
    return [settling, sent()];
  }

  test.each([
    ["the first message", false],
    ["the one after an upload", true],
  ])("is kept once it was aborted: the next settlement reports the batch (%s)", async (_, isUploaded) => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, till.sale());
    const [settling, sent] = await sentBefore(till, isUploaded);
    expect(await instance.settler.abort(partner.id, settling.id)).toBe(true);
    expect(await instance.settler.late.answeredUnmatched("", strayAnswer({ ...sent, traceNo: "999999" }))).toBe(false);
    expect(await instance.settler.late.answeredUnmatched("second", strayAnswer(sent))).toBe(false);
    expect(instance.events.filter(({ subjectId }) => subjectId === settling.id)).toHaveLength(1);
    expect(await instance.settler.late.answeredUnmatched("", strayAnswer(sent))).toBe(true);
    expect(await instance.eventOf("settlement_late", settling.id)).toMatchObject({ detail: { batch: "closed" } });
    const { asked, ends } = watch(till);
    const reported = await instance.ended(partner, till.settlement());
    ends();
    expect(asked).toEqual([]);
    expect(reported.facts).toMatchObject({
      fields: { batchNo: "000001", refId: "000000000510" },
      settlementList: [entry(sale)],
    });
    expect(field(await instance.ended(partner, till.sale()), "batchNo")).toBe("000002");
  });

  test("is kept also if the database does not take it at once", async () => {
    const till = new LedgerTill();
    await instance.ended(partner, till.sale());
    const [settling, sent] = await sentBefore(till);
    expect(await instance.settler.abort(partner.id, settling.id)).toBe(true);
    vi.spyOn(instance.settlements, "keepLate").mockRejectedValueOnce(new Error("the database is away"));
    expect(await instance.settler.late.answeredUnmatched("", strayAnswer(sent))).toBe(true);
    expect(await instance.eventOf("settlement_late", settling.id)).toMatchObject({ detail: { batch: "closed" } });
  });

  test("ends it if it still runs", async () => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, till.sale());
    const [settling, sent] = await sentBefore(till);
    await instance.settler.late.answeredUnmatched("", strayAnswer(sent));
    expect(await instance.endOf(settling)).toMatchObject({
      state: "SUCCESS",
      facts: { fields: { refId: "000000000510" }, settlementList: [entry(sale)] },
    });
  });

  test.each(["12", "95"])("decides nothing if it is %s, whether it runs or was aborted", async (responseCode) => {
    const till = new LedgerTill();
    await instance.ended(partner, till.sale());
    const [settling, sent] = await sentBefore(till);
    const refusal = { ...strayAnswer(sent), responseCode };
    expect(await instance.settler.late.answeredUnmatched("", refusal)).toBe(true);
    expect(await instance.find(partner, settling.id)).toMatchObject({ state: "INIT" });
    expect(await instance.settler.abort(partner.id, settling.id)).toBe(true);
    expect(await instance.settler.late.answeredUnmatched("", refusal)).toBe(true);
    expect(field(await instance.ended(partner, till.sale()), "batchNo")).toBe("000001");
    expect(await instance.ended(partner, till.settlement())).toMatchObject({ state: "SUCCESS" });
  });

  test("is kept for the first of two that were aborted, too", async () => {
    const till = new LedgerTill();
    const [first, sent] = await sentBefore(till);
    await instance.settler.abort(partner.id, first.id);
    const [second] = await sentBefore(till);
    await instance.settler.abort(partner.id, second.id);
    expect(await instance.settler.late.answeredUnmatched("", strayAnswer(sent))).toBe(true);
    expect(await instance.eventOf("settlement_late", first.id)).toMatchObject({ detail: { batch: "closed" } });
  });

  test("decides nothing if it may be that of two", async () => {
    const [one, other] = [new LedgerTill(), new LedgerTill()];
    const [settling, sent] = await sentBefore(one);
    const [alike] = await sentBefore(other);
    const ofBoth = { ...strayAnswer(sent), tid: "", mayAnswer: () => true };
    expect(await instance.settler.late.answeredUnmatched("", ofBoth)).toBe(false);
    for (const { id } of [settling, alike]) expect(await instance.find(partner, id)).toMatchObject({ state: "INIT" });
    for (const { id } of [settling, alike]) await instance.settler.abort(partner.id, id);
  });
});

describe("an answer to an aborted settlement that comes while another one runs", () => {
  /** The second has sent its totals, and waits for its answer, when that of the first comes. */
  async function whileAnotherRuns(till: LedgerTill, code: string, betweenThem?: () => Promise<unknown>) {
    // The bank itself has settled what the test does not change.
    instance.nextFares("SETTLEMENT", { answers: code === "00" || betweenThem !== undefined ? "lost" : "never" });
    const first = await instance.begun(partner, till.settlement());
    await expect.poll(() => instance.lastAsked("SETTLEMENT").message.transactionId).toBe(first.id);
    const sent = instance.lastAsked("SETTLEMENT").message;
    expect(await instance.settler.abort(partner.id, first.id)).toBe(true);
    await betweenThem?.();
    instance.nextFares("SETTLEMENT", code === "00" ? {} : { declines: code });
    const held = bench.holdLink("a SETTLEMENT leaves");
    const second = await instance.begun(partner, till.settlement());
    await held.reached;
    await instance.settler.late.answeredUnmatched("", strayAnswer(sent));
    const event = await instance.eventOf("settlement_late", first.id);
    await expect(instance.run(partner, till.sale())).rejects.toMatchObject({ code: "settlement_in_progress" });
    held.go();
    return { event, second: await instance.endOf(second) };
  }

  test.each(["00", "12", "95"])("closes the batch, and that one reports it, though it is answered %s", async (code) => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, till.sale());
    const { event, second } = await whileAnotherRuns(till, code);
    expect(event).toMatchObject({ detail: { batch: "closed" } });
    expect(second).toMatchObject({ state: "SUCCESS", facts: { settlementList: [entry(sale)] } });
    const batches = await bench.query("SELECT batch_no, settlement_id FROM batches WHERE tid = $1", [till.tid]);
    expect(batches).toEqual([{ batch_no: "000001", settlement_id: second.id }]);
    const next = await instance.ended(partner, till.sale());
    const settled = await instance.ended(partner, till.settlement());
    expect(settled.facts).toMatchObject({ fields: { batchNo: "000002" }, settlementList: [entry(next)] });
  });

  test.each([
    ["something entered", "refused, it is in doubt", "12", "settlement_in_doubt"],
    ["something was reversed", "refused, it is in doubt", "12", "settlement_in_doubt"],
    ["something entered", "accepted, that decides", "00", undefined],
  ])("does not close a batch that %s between them: if the other is %s", async (what, _, code, refusal) => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, till.sale());
    const change = () => (what === "something entered" ? till.sale() : till.reversal(sale));
    const { event, second } = await whileAnotherRuns(till, code, () => instance.ended(partner, change()));
    expect(event).toMatchObject({ detail: { batch: "in_doubt" } });
    expect(second.state).toBe(refusal === undefined ? "SUCCESS" : "ERROR");
    const again = instance.ended(partner, till.settlement());
    if (refusal !== undefined) await expect(again).rejects.toMatchObject({ code: refusal });
    else expect(field(await again, "batchNo")).toBe("000002");
  });
});

describe("a bank with other totals (95)", () => {
  async function differing(till: LedgerTill): Promise<{ readonly sales: Transaction[]; readonly voided: Transaction }> {
    const sales = [await instance.ended(partner, till.sale()), await instance.ended(partner, till.sale())];
    const voided = await instance.ended(partner, till.sale());
    await instance.ended(partner, till.void(voided));
    bookUnmatched(bench, till);
    return { sales, voided };
  }

  test("gets the batch uploaded, transaction by transaction, and settles by that", async () => {
    const till = new LedgerTill();
    const { sales, voided } = await differing(till);
    const { asked, ends } = watch(till);
    const settled = await instance.ended(partner, till.settlement());
    ends();
    expect(settled).toMatchObject({
      state: "SUCCESS",
      facts: { fields: { saleQuantity: "3", voidQuantity: "1" }, settlementList: sales.map(entry) },
    });
    const uploads = asked.flatMap((message) => (message.command === "BATCH_UPLOAD" ? [message] : []));
    expect(asked.map(({ command }) => command)).toEqual([
      "SETTLEMENT",
      "BATCH_UPLOAD",
      "BATCH_UPLOAD",
      "BATCH_UPLOAD",
      "SETTLEMENT",
    ]);
    expect(uploads.map(({ uploaded, voided: isVoided }) => [uploaded.transactionId, isVoided])).toEqual([
      ...sales.map(({ id }) => [id, false]),
      [voided.id, true],
    ]);
    expect(asked.at(-1)).toMatchObject({ afterUpload: true });
    expect(new Set(asked.map(({ traceNo }) => traceNo)).size, "each message has a number of its own").toBe(
      asked.length,
    );
    const next = await instance.ended(partner, till.sale());
    expect(Number(field(next, "traceNo"))).toBe(Number(asked.at(-1)?.traceNo) + 1);
    expect(bench.bank.settledBatch(till.mid, till.tid, "VND")).toMatchObject({ saleQuantity: 3, voidQuantity: 1 });
  });

  test("gets each page from one instance, however long that takes, and from one only", async () => {
    const till = new LedgerTill();
    await differing(till);
    const ends: { readonly found: number; readonly set: number }[] = [];
    bench.watchLink(async (what) => {
      if (what !== "a BATCH_UPLOAD leaves") return;
      if (ends.length === 2) return;
      // The claim is shortened, and with the second message another instance has it.
      const [seconds, other] = ends.length === 1 ? [0, ", tries = tries + 1"] : [5, ""];
      const [row] = await bench.query<{ found: number; set: number }>(
        `WITH before AS (SELECT due_at FROM settlements WHERE tid = $1)
         UPDATE settlements s SET due_at = now() + $2 * interval '1 s'${other} FROM before WHERE s.tid = $1
         RETURNING extract(epoch FROM before.due_at)::float8 AS found, extract(epoch FROM s.due_at)::float8 AS set`,
        [till.tid, seconds],
      );
      if (row !== undefined) ends.push(row);
    });
    const { asked, ends: unwatch } = watch(till);
    const settling = await instance.begun(partner, till.settlement());
    expect(await endWhenDue(settling)).toMatchObject({ state: "SUCCESS" });
    unwatch();
    // The first message renewed the claim.
    expect(ends[1]?.found).toBeGreaterThan(ends[0]?.set ?? Number.POSITIVE_INFINITY);
    // The first is acknowledged; the second is sent by both.
    const uploads = Array(2 + 2).fill("BATCH_UPLOAD");
    expect(asked.map(({ command }) => command)).toEqual(["SETTLEMENT", ...uploads, "SETTLEMENT"]);
  });

  test("is passed on between two messages when its instance stops, and no message is repeated", async () => {
    const leaving = await bench.start();
    const till = new LedgerTill();
    await differing(till);
    const stopped = Promise.withResolvers<void>();
    bench.watchLink(async (what) => {
      if (what === "a BATCH_UPLOAD leaves") stopped.resolve(leaving.ledger.stop());
    });
    const [before, after] = [watch(till, leaving), watch(till)];
    // Its caller learns at once that the outcome is not known yet.
    const { transaction, done } = await leaving.run(partner, till.settlement());
    await stopped.promise;
    expect({ done, state: transaction.state }).toEqual({ done: false, state: "INIT" });
    expect(await endWhenDue(transaction)).toMatchObject({ state: "SUCCESS" });
    before.ends();
    after.ends();
    expect(before.asked.map(({ command }) => command)).toEqual(["SETTLEMENT", "BATCH_UPLOAD"]);
    expect(after.asked.map(({ command }) => command)).toEqual(["BATCH_UPLOAD", "BATCH_UPLOAD", "SETTLEMENT"]);
  });

  test("and still has others after the upload refuses it, once: the batch is open again", async () => {
    const till = new LedgerTill();
    await differing(till);
    const disagrees = instance.acquirer.behave(({ command, tid }) =>
      command === "SETTLEMENT" && tid === till.tid ? { declines: "95" } : undefined,
    );
    const { asked, ends } = watch(till);
    const refused = await instance.ended(partner, till.settlement());
    ends();
    disagrees();
    expect(refused).toMatchObject({ state: "ERROR", facts: { settlementList: [] } });
    expect(asked.filter(({ command }) => command === "SETTLEMENT")).toHaveLength(1 + 1);
    expect(field(await instance.ended(partner, till.sale()), "batchNo")).toBe("000001");
  });

  // A duplicate is right for a repeated message alone.
  test.each(["30", "94"])("and refuses an upload with %s makes the settlement refused", async (responseCode) => {
    const till = new LedgerTill();
    await differing(till);
    instance.nextFares("BATCH_UPLOAD", { declines: responseCode });
    const refused = await instance.ended(partner, till.settlement());
    expect(refused).toMatchObject({ state: "ERROR" });
    expect(await instance.eventOf("settlement_mismatched", refused.id)).toMatchObject({ detail: { tid: till.tid } });
    expect(await instance.eventOf("upload_refused", refused.id)).toMatchObject({
      detail: { tid: till.tid, transactionId: expect.any(String), responseCode },
    });
    expect(await instance.ended(partner, till.settlement())).toMatchObject({ state: "SUCCESS" });
  });
});

describe("a partner's own BATCH_UPLOAD", () => {
  test("uploads what counts, leaves the batch open, and sends no IPN", async () => {
    const till = new LedgerTill();
    const sale = await instance.ended(partner, till.sale());
    await instance.ended(partner, till.sale("tok_decline_05"));
    const { asked, ends } = watch(till);
    const uploaded = await instance.ended(partner, till.batchUpload());
    ends();
    expect(uploaded).toMatchObject({
      state: "SUCCESS",
      facts: { fields: { batchNo: "000001", isoResponseCode: "00" } },
    });
    expect(asked).toMatchObject([{ command: "BATCH_UPLOAD", uploaded: { transactionId: sale.id } }]);
    expect(await bench.ipnsOf(uploaded.id)).toEqual([]);
    expect(field(await instance.ended(partner, till.sale()), "batchNo")).toBe("000001");
  });

  test("that another instance continues sends what has entered the batch since, too", async () => {
    const till = new LedgerTill();
    const before = await instance.ended(partner, till.sale());
    const dying = await bench.start();
    const died = dying.crashesAt({ at: "ask", phase: "after" });
    const { transaction } = await dying.run(partner, till.batchUpload(), true);
    await died;
    const since = await instance.ended(partner, till.sale());
    const { asked, ends } = watch(till);
    // Once: what is due again while it is on its way is sent twice.
    await bench.runDueNow();
    expect(await instance.endOf(transaction)).toMatchObject({ state: "SUCCESS" });
    ends();
    expect(asked).toMatchObject([before, since].map(({ id }) => ({ uploaded: { transactionId: id } })));
  });

  test("keeps a settlement waiting until it has ended: the host would count what it uploads twice", async () => {
    const till = new LedgerTill();
    await instance.ended(partner, till.sale());
    const upload = bench.holdLink("a BATCH_UPLOAD leaves");
    const { asked, ends } = watch(till);
    const uploading = await instance.begun(partner, till.batchUpload());
    await upload.reached;
    const settling = await instance.begun(partner, till.settlement());
    const step = async () => (await bench.query("SELECT step FROM settlements WHERE id = $1", [settling.id]))[0];
    const tried = async () => {
      instance.settler.wake();
      const rows = await bench.query<{ tries: number }>("SELECT tries FROM settlements WHERE id = $1", [settling.id]);
      return rows[0]?.tries ?? 100;
    };
    await expect.poll(tried).toBeGreaterThan(2);
    expect(await step()).toEqual({ step: "waiting" });
    upload.go();
    expect(await instance.endOf(uploading)).toMatchObject({ state: "SUCCESS" });
    expect(await endWhenDue(settling)).toMatchObject({ state: "SUCCESS" });
    ends();
    expect(asked.map(({ command }) => command)).toEqual(["BATCH_UPLOAD", "SETTLEMENT"]);
  });

  test("ends with the code of the refused transaction", async () => {
    const till = new LedgerTill();
    await instance.ended(partner, till.sale());
    instance.nextFares("BATCH_UPLOAD", { declines: "30" });
    const refused = await instance.ended(partner, till.batchUpload());
    expect(refused).toMatchObject({ state: "ERROR", facts: { fields: { isoResponseCode: "30" } } });
  });
});
