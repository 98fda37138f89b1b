import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AcquirerMessage } from "../acquirer/acquirer.ts";
import type { LeaseId } from "../ids.ts";
import { believedMs, Lease } from "../leases/lease.ts";
import type { Partner } from "../partners/partner.ts";
import { postgresLeases } from "../store/leases.ts";
import { postgresReversals } from "../store/reversals/reversals.ts";
import { bookUnmatched, field, LedgerBench, type LedgerInstance, LedgerTill } from "./ledger.fixture.ts";
import type { CrashPoint } from "./life.fixture.ts";

let bench: LedgerBench;
let partner: Partner;
let till: LedgerTill;
beforeEach(async () => {
  bench = await LedgerBench.open();
  partner = await bench.partner();
  till = new LedgerTill();
});
afterEach(() => bench.close());

/** Begins a command on an instance that crashes. */
async function crash(death: CrashPoint, begin: (gone: LedgerInstance) => Promise<unknown>): Promise<LedgerInstance> {
  const instance = await bench.start();
  const crashed = instance.crashesAt(death);
  void begin(instance).catch(() => undefined);
  await crashed;
  return instance;
}

const stages: readonly (readonly [string, CrashPoint, "00" | "25"])[] = [
  ["before the acquirer is asked", { at: "ask", phase: "before" }, "25"],
  ["after the acquirer has acted", { at: "ask", phase: "after" }, "00"],
  ["before its result is written", { at: "complete", phase: "before" }, "00"],
];

describe("an instance that crashes", () => {
  test.each(stages)(
    "%s leaves a Sale that another ends as ERROR 96, with its IPN and its Reversal",
    async (_, death, code) => {
      const request = till.sale();
      await crash(death, (gone) => gone.run(partner, request, true));
      const instance = await bench.start();
      const [begun] = await bench.query<{ id: never; state: string }>("SELECT id, state FROM transactions");
      expect(begun?.state).toBe("INIT");
      expect(await instance.takeOver(partner)).toBe(1);
      const sale = await instance.endOf({ partnerId: partner.id, id: begun?.id ?? ("" as never) });
      expect(sale).toMatchObject({ state: "ERROR", facts: { fields: { isoResponseCode: "96", refId: "" } } });
      expect(await bench.ipnsOf(sale.id)).toEqual([sale.facts]);
      await bench.reversed(sale.id, code);
      expect(bench.bank.find(sale.id)?.state ?? "reversed").toBe("reversed");
      expect(instance.events).toMatchObject([{ kind: "in_doubt", subjectId: sale.id }]);
      expect(await instance.ended(partner, request)).toMatchObject({ id: sale.id, state: "ERROR" });
      expect(await instance.takeOver(partner)).toBe(0);
    },
  );

  test("once the result is durable leaves nothing to do: the Sale counts, and its IPN is pending", async () => {
    const request = till.sale();
    await crash({ at: "complete", phase: "after" }, (gone) => gone.run(partner, request, true));
    const instance = await bench.start();
    expect(await instance.takeOver(partner)).toBe(0);
    const sale = await instance.ended(partner, request);
    expect(sale).toMatchObject({ state: "SUCCESS", notification: { state: "pending" } });
    expect(bench.bank.find(sale.id)).toMatchObject({ state: "stands" });
  });

  test.each(["VOID", "PREAUTH_COMPLETE"] as const)(
    "in a %s leaves its original free again, once that is reversed",
    async (command) => {
      const before = await bench.start();
      const original = await before.ended(partner, command === "VOID" ? till.sale() : till.preAuth());
      const follow = () => (command === "VOID" ? till.void(original) : till.complete(original));
      const request = follow();
      await crash({ at: "ask", phase: "after" }, (gone) => gone.run(partner, request, true));
      await expect(before.run(partner, follow())).rejects.toMatchObject({ code: "in_flight" });
      await before.takeOver(partner);
      const ended = await before.ended(partner, request);
      expect(ended).toMatchObject({ command, state: "ERROR", facts: { fields: { isoResponseCode: "96" } } });
      await bench.reversed(ended.id);
      expect(await before.ended(partner, follow())).toMatchObject({ state: "SUCCESS" });
    },
  );

  test("in a Logon leaves an ERROR 96, without Reversal and IPN", async () => {
    const request = till.logon();
    await crash({ at: "ask", phase: "before" }, (gone) => gone.run(partner, request, true));
    const instance = await bench.start();
    await instance.takeOver(partner);
    const logon = await instance.ended(partner, request);
    expect(logon).toMatchObject({ state: "ERROR", facts: { fields: { isoResponseCode: "96" } } });
    expect(await bench.ipnsOf(logon.id)).toEqual([]);
    expect(await bench.query("SELECT FROM reversals")).toEqual([]);
  });

  test.each([
    ["before it is sent", { at: "ask", phase: "before" }],
    ["before its answer is written", { at: "ask", phase: "after" }],
    ["when it is written", { at: "end", phase: "after" }],
  ] as const)("in a Reversal %s has it sent by another", async (_, death) => {
    const instance = await bench.start();
    instance.acquirer.behave(({ command }) => (command === "REVERSAL" ? { answers: "not_sent" } : undefined));
    const sale = await instance.ended(partner, till.sale("tok_timeout"));
    await bench.tried(sale.id, 1);
    await instance.crash();
    const isReversal = (message: AcquirerMessage) => message.command === "REVERSAL";
    const gone = await bench.start();
    const crashed = gone.crashesAt(death.at === "ask" ? { ...death, when: isReversal } : death);
    await bench.runDueNow();
    await crashed;
    const next = await bench.start();
    await bench.runDueNow();
    await bench.reversed(sale.id);
    expect(next.life.lives).toBe(true);
    expect(bench.bank.find(sale.id)).toMatchObject({ state: "reversed" });
    expect(await bench.ipnsOf(sale.id)).toHaveLength(1);
  });

  test.each([
    ["before it is queued", { at: "queue", phase: "before" }],
    ["once it is queued", { at: "queue", phase: "after" }],
    ["before it is asked", { at: "ask", phase: "before" }],
    ["after it was answered", { at: "ask", phase: "after" }],
    ["when its answer is written", { at: "end", phase: "after" }],
  ] as const)("in a partner's REVERSAL %s has it carried out by another, as it was asked for", async (_, death) => {
    const before = await bench.start();
    const sale = await before.ended(partner, till.sale());
    const request = till.reversal(sale);
    await before.crash();
    await crash(death, (gone) => gone.run(partner, request, true));
    const instance = await bench.start();
    const taken = instance.takeOver(partner);
    await bench.runDueNow();
    await taken;
    expect(await instance.ended(partner, request)).toMatchObject({ command: "REVERSAL", state: "SUCCESS" });
    expect(bench.bank.find(sale.id)).toMatchObject({ state: "reversed" });
    await expect(instance.run(partner, till.void(sale))).rejects.toMatchObject({ code: "already_reversed" });
    expect(await bench.ipnsOf(sale.id)).toHaveLength(1);
  });

  test("in a REVERSAL of its own Sale in flight leaves both to another: nothing is charged", async () => {
    const request = till.sale();
    const reversal = till.reversalOf(request.reqId);
    await crash({ at: "complete", phase: "before" }, async (gone) => {
      gone.nextFares("SALE", { answers: "never" });
      await gone.run(partner, request, true);
      await gone.run(partner, reversal, true);
    });
    const instance = await bench.start();
    await instance.takeOver(partner);
    await bench.runDueNow();
    expect(await instance.ended(partner, reversal)).toMatchObject({ state: "SUCCESS" });
    const sale = await instance.ended(partner, request);
    expect(sale.state).toBe("ERROR");
    await bench.reversed(sale.id);
    expect(bench.bank.find(sale.id)).toMatchObject({ state: "reversed" });
    expect(await bench.ipnsOf(sale.id)).toHaveLength(1);
  });

  test.each([
    ["is done", {}, "SUCCESS", "00"],
    ["is parked and then stands", { declines: "12" }, "ERROR", "96"],
  ])("before it answers the REVERSAL of another leaves that to it: its Reversal %s", async (_, fare, state, code) => {
    const instance = await bench.start();
    const sale = await instance.ended(partner, till.sale());
    instance.nextFares("REVERSAL", { answers: "never" });
    const { transaction } = await instance.run(partner, till.reversal(sale), true);
    await bench.tried(sale.id, 1);
    const isDue = () => bench.query("UPDATE reversals SET due_at = now() WHERE transaction_id = $1", [sale.id]);
    await crash({ at: "complete", phase: "before" }, async (gone) => {
      gone.nextFares("REVERSAL", fare);
      await isDue();
      gone.reverser.wake();
    });
    const { letStand, queue } = postgresReversals(bench.connections.homes);
    expect(await letStand(partner.id, sale.id)).toBe(state === "ERROR");
    const end = async () => {
      const found = await instance.find(partner, transaction.id);
      return [found.state, field(found, "isoResponseCode")];
    };
    // The one that ended it may yet answer.
    expect([await instance.takeOver(partner), await end()]).toEqual([0, ["INIT", ""]]);
    await isDue();
    expect([await instance.takeOver(partner), await end()]).toEqual([1, [state, code]]);
    if (state === "ERROR") await queue(partner.id, sale.id, transaction.id);
    expect((await bench.reversalOf(sale.id))?.state).toBe(state === "ERROR" ? "STANDS" : "DONE");
  });

  test.each([
    ["before the totals are sent", { at: "ask", phase: "before" }],
    ["after the bank has settled", { at: "ask", phase: "after" }],
    ["before the batch is closed", { at: "complete", phase: "before" }],
    ["once the batch is closed", { at: "complete", phase: "after" }],
  ] as const)("in a settlement %s has it carried through by another", async (_, death) => {
    const before = await bench.start();
    const sale = await before.ended(partner, till.sale());
    await before.crash();
    const request = till.settlement();
    await crash(death, (gone) => gone.run(partner, request, true));
    const instance = await bench.start();
    expect(await instance.takeOver(partner)).toBe(0);
    await bench.runDueNow();
    const settled = await instance.ended(partner, request);
    expect(settled).toMatchObject({
      state: "SUCCESS",
      facts: { fields: { saleQuantity: "1" }, settlementList: [{ reqId: field(sale, "reqId") }] },
    });
    expect(await bench.ipnsOf(settled.id)).toHaveLength(1);
    expect(field(await instance.ended(partner, till.sale()), "batchNo")).toBe("000002");
  });

  test("in the middle of a Batch Upload lets another go on behind the last answer, and settle once", async () => {
    const before = await bench.start();
    const sales = 250;
    for (let begun = 0; begun < sales; begun += 50) {
      await Promise.all(Array.from({ length: 50 }, () => before.ended(partner, till.sale())));
    }
    await before.crash();
    bookUnmatched(bench, till);
    const request = till.settlement();
    let uploads = 0;
    const isThe150th = ({ command }: AcquirerMessage) => command === "BATCH_UPLOAD" && ++uploads === 150;
    await crash({ at: "ask", phase: "after", when: isThe150th }, (gone) => gone.run(partner, request, true));
    const instance = await bench.start();
    const asked: AcquirerMessage[] = [];
    // The host recognises the one that it has.
    instance.acquirer.behave((message) => {
      asked.push(message);
      return message.command === "BATCH_UPLOAD" && message.repeat ? { declines: "94" } : undefined;
    });
    await bench.runDueNow();
    const settled = await instance.ended(partner, request);
    expect(settled).toMatchObject({ state: "SUCCESS", facts: { fields: { saleQuantity: String(sales) } } });
    expect(asked.at(-1)).toMatchObject({ command: "SETTLEMENT" });
    const again = asked.filter(({ command }) => command === "BATCH_UPLOAD");
    expect(again).toHaveLength(sales - 149);
    expect(again.map(({ repeat }) => repeat).lastIndexOf(true)).toBe(0);
    expect(new Set(again.map(({ traceNo }) => traceNo)).size).toBe(again.length);
    expect(bench.bank.settledBatch(till.mid, till.tid, "VND")).toMatchObject({ saleQuantity: sales });
  });
});

describe("an instance that lives", () => {
  test("keeps its own commands, however long they take", async () => {
    const instance = await bench.start();
    const other = await bench.start();
    const answer = bench.holdLink("the answer to a SALE arrives");
    const sale = await instance.begun(partner, till.sale());
    await answer.reached;
    for (let looks = 0; looks < 20; looks += 1) expect(await other.takeOver(partner)).toBe(0);
    answer.go();
    expect(await instance.endOf(sale)).toMatchObject({ state: "SUCCESS" });
  });

  test("that comes back after its lease is gone changes nothing: its answer is late, and reversed again", async () => {
    const stopped = await bench.start();
    const other = await bench.start();
    const answer = bench.holdLink("the answer to a SALE arrives");
    const sale = await stopped.begun(partner, till.sale());
    await answer.reached;
    await bench.dropLease(stopped.leaseId);
    expect(await other.takeOver(partner)).toBe(1);
    await bench.reversed(sale.id);
    answer.go();
    await stopped.eventOf("late_approval", sale.id);
    await expect.poll(() => bench.reversalOf(sale.id)).toMatchObject({ state: "DONE", tries: 3 });
    expect(await other.find(partner, sale.id)).toMatchObject({
      state: "ERROR",
      facts: { fields: { isoResponseCode: "96" } },
    });
    expect(await bench.ipnsOf(sale.id)).toHaveLength(1);
    expect(bench.bank.find(sale.id)).toMatchObject({ state: "reversed" });
  });

  test("takes over again what it could not end the first time", async () => {
    const request = till.sale();
    await crash({ at: "ask", phase: "after" }, (gone) => gone.run(partner, request, true));
    const instance = await bench.start();
    await instance.ledger.takeOver(() => Promise.reject(new Error("the partners cannot be read now")));
    expect(await instance.ledger.findByReqId(partner.id, request.reqId)).toMatchObject({ state: "INIT" });
    expect(await instance.takeOver(partner)).toBe(1);
    expect(await instance.ended(partner, request)).toMatchObject({ facts: { fields: { isoResponseCode: "96" } } });
  });

  test("ends a command whose result could not be stored, while its own lease lives on", async () => {
    const instance = await bench.start();
    const away = new Error("the database of its partner is away");
    instance.life.breaksAt("complete", () => true, away, 2);
    const request = till.sale();
    expect(await instance.run(partner, request, false)).toMatchObject({ done: false });
    expect(await instance.takeOver(partner)).toBe(1);
    const sale = await instance.ended(partner, request);
    expect(sale).toMatchObject({ state: "ERROR", facts: { fields: { isoResponseCode: "96" } } });
    expect(await bench.ipnsOf(sale.id)).toHaveLength(1);
    await bench.reversed(sale.id);
    expect(await instance.takeOver(partner)).toBe(0);
  });

  test("records no doubt of a command whose result was stored after all", async () => {
    const instance = await bench.start();
    const request = till.sale();
    const away = new Error("the connection was cut");
    instance.life.breaksAt("complete", () => true, away, 2);
    expect(await instance.run(partner, request, false)).toMatchObject({ done: false });
    await bench.query("UPDATE transactions SET state = 'SUCCESS', completed_at = now(), lease_id = NULL");
    expect(await instance.takeOver(partner)).toBe(1);
    expect(instance.events).toEqual([]);
  });

  test("does not ask the acquirer for a command that it began under a lease that it has lost", async () => {
    const instance = await bench.start();
    const { reached, release } = instance.life.holdsAnswerOf("begin");
    const running = instance.ended(partner, till.sale());
    await reached;
    await instance.losesLease();
    const other = await bench.start();
    expect(await other.takeOver(partner)).toBe(1);
    release();
    const sale = await running;
    expect(sale).toMatchObject({ state: "ERROR", facts: { fields: { isoResponseCode: "96" } } });
    await bench.reversed(sale.id, "25");
    expect(bench.bank.find(sale.id)).toBeUndefined();
  });

  test("asks the acquirer although it stood still meanwhile, as long as its lease is there", async () => {
    const instance = await bench.start();
    const { reached, release } = instance.life.holdsAnswerOf("begin");
    const running = instance.ended(partner, till.sale());
    await reached;
    instance.hasStoodStill = true;
    release();
    const sale = await running;
    expect(sale).toMatchObject({ state: "SUCCESS" });
    expect(bench.bank.find(sale.id)).toMatchObject({ state: "stands" });
  });

  test("ends what it took over without hearing that it did, and leaves alone what it runs", async () => {
    const request = till.sale();
    await crash({ at: "ask", phase: "after" }, (gone) => gone.run(partner, request, true));
    const instance = await bench.start();
    instance.life.breaksAt("takeOver", () => true, new Error("the connection was cut after the COMMIT"));
    await expect(instance.takeOver(partner)).rejects.toThrow("was cut");
    await bench.query(`UPDATE transactions SET lease_id = '${instance.leaseId}'`);
    const answer = bench.holdLink("the answer to a SALE arrives");
    const running = await instance.begun(partner, till.sale());
    await answer.reached;
    expect(await instance.takeOver(partner)).toBe(1);
    expect(await instance.ended(partner, request)).toMatchObject({ facts: { fields: { isoResponseCode: "96" } } });
    expect(await instance.find(partner, running.id)).toMatchObject({ state: "INIT" });
  });

  test("leaves alone a command whose INIT is durable, and whose begin is not answered yet", async () => {
    const instance = await bench.start();
    // An INIT may be its own without its knowledge: it looks for those.
    instance.life.breaksAt("takeOver", () => true, new Error("the connection was cut"));
    await expect(instance.takeOver(partner)).rejects.toThrow("was cut");
    const { reached, release } = instance.life.holdsAnswerOf("begin");
    const running = instance.ended(partner, till.sale());
    await reached;
    const inits = await bench.query("SELECT lease_id FROM transactions WHERE state = 'INIT'");
    expect(inits).toEqual([{ lease_id: instance.leaseId }]);
    expect(await instance.takeOver(partner)).toBe(0);
    release();
    const sale = await running;
    expect(sale).toMatchObject({ state: "SUCCESS" });
    expect(instance.events).toEqual([]);
    expect(await bench.ipnsOf(sale.id)).toEqual([sale.facts]);
    expect(bench.bank.find(sale.id)).toMatchObject({ state: "stands" });
  });

  test("leaves alone a command that begins while it looks for its own", async () => {
    const instance = await bench.start();
    instance.life.breaksAt("takeOver", () => true, new Error("the connection was cut"));
    await expect(instance.takeOver(partner)).rejects.toThrow("was cut");
    const { reached, release } = instance.life.holdsCallOf("initsOf");
    const looking = instance.takeOver(partner);
    await reached;
    const answer = bench.holdLink("the answer to a SALE arrives");
    const sale = await instance.begun(partner, till.sale());
    await answer.reached;
    release();
    expect(await looking).toBe(0);
    answer.go();
    expect(await instance.endOf(sale)).toMatchObject({ state: "SUCCESS" });
    expect(instance.events).toEqual([]);
  });

  test("ends what it took over without hearing that it did, also if the COMMIT happens later", async () => {
    const request = till.sale();
    await crash({ at: "ask", phase: "after" }, (gone) => gone.run(partner, request, true));
    const instance = await bench.start();
    instance.life.breaksAt("takeOver", () => true, new Error("the connection was cut before the COMMIT"));
    await expect(instance.takeOver(partner)).rejects.toThrow("was cut");
    const late = await bench.connections.pool.connect();
    try {
      await late.query("BEGIN");
      await late.query("UPDATE transactions SET lease_id = $1", [instance.leaseId]);
      expect(await instance.takeOver(partner)).toBe(0);
      await late.query("COMMIT");
    } finally {
      late.release(true);
    }
    await expect.poll(() => instance.takeOver(partner), { interval: 100 }).toBe(1);
    expect(await instance.ended(partner, request)).toMatchObject({ facts: { fields: { isoResponseCode: "96" } } });
  });

  test("takes over from an instance whose lease no longer beats, and not before it is declared dead", async () => {
    const instance = await bench.start();
    const connection = await bench.connections.connectDirectly();
    let lives = true;
    const leases = postgresLeases(() => Promise.resolve(connection));
    const store = postgresLeases(() => (lives ? Promise.resolve(connection) : Promise.reject(new Error("gone"))));
    let ms = 0;
    const beats: (() => void)[] = [];
    const shared = {
      clock: { nowMs: () => bench.clock.nowMs() + ms, monotonicMs: () => ms },
      timers: {
        after: (_: number, beat: () => void) => {
          beats.push(beat);
          return () => undefined;
        },
      },
      onTrouble: () => {},
    };
    /** Each lease beats once a second, and schedules the next beat when that was answered. */
    const pass = async (seconds: number) => {
      for (let second = 0; second < seconds; second += 1) {
        ms += 1_000;
        for (const beat of beats.splice(0)) {
          const { length } = beats;
          beat();
          await expect.poll(() => beats).toHaveLength(length + 1);
        }
        // Only this test beats the lease of the bench's other instance.
        await leases.beat(instance.leaseId, "api");
      }
    };
    try {
      const lease = new Lease({ store, ...shared });
      await lease.start();
      const reaped: LeaseId[] = [];
      const onReaped = (ids: readonly LeaseId[]) => void reaped.push(...ids);
      const reaping = new Lease({ store: leases, ...shared });
      await reaping.start({ onReaped });
      const gone = await bench.start(lease.current());
      const request = till.sale();
      const crashed = gone.life.endsAt({ at: "ask", phase: "after" });
      void gone.run(partner, request, true);
      await crashed;
      await pass(10);
      lives = false;
      await pass(believedMs / 1_000);
      expect(await instance.takeOver(partner)).toBe(0);
      expect(reaped).toEqual([]);
      await pass(2);
      expect(reaped).toEqual([gone.leaseId]);
      expect(await instance.takeOver(partner)).toBe(1);
      expect(await instance.ended(partner, request)).toMatchObject({
        state: "ERROR",
        facts: { fields: { isoResponseCode: "96" } },
      });
    } finally {
      await connection.end();
    }
  });
});
