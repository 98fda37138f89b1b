import type { Pool, PoolClient } from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { lockWaits } from "../../../../../test/support/locks.ts";
import { newId } from "../../ids.ts";
import type { Init } from "../../ledger/store.ts";
import { Homes } from "../database/homes.ts";
import { postgresReversals } from "../reversals/reversals.ts";
import { createHistory, insertLease, insertPartner, sampleInit } from "../rows.fixture.ts";
import { postgresSettlements } from "../settlements/settlements.ts";
import { PostgresTransactions } from "./transactions.ts";

/** Two instances, which share no batch. */

const connections = await openTestDatabase();
await createHistory(connections.pool);
const first = new PostgresTransactions(connections);
const second = new PostgresTransactions(connections);
const partnerId = await insertPartner(connections.pool);
const leaseId = await insertLease(connections.pool);

const settles = { traceNo: true, invoiceNo: false, batch: false, settlement: "SETTLEMENT" } as const;
const newTid = () => `T${newId().slice(-7)}`;

async function terminal(tid: string) {
  const { rows } = await connections.pool.query("SELECT trace_no, batch_closing FROM terminals WHERE tid = $1", [tid]);
  return rows[0];
}

test("a settlement that loses the race for its reqId leaves neither a closing batch nor a number behind", async () => {
  for (let round = 0; round < 10; round += 1) {
    const [sold, settled, reqId] = [newTid(), newTid(), newId()];
    for (const tid of [sold, settled]) await first.begin(sampleInit(partnerId, leaseId, { tid }));
    const [sale, settlement] = await Promise.all([
      first.begin(sampleInit(partnerId, leaseId, { tid: sold, reqId })),
      second.begin(sampleInit(partnerId, leaseId, { tid: settled, reqId, command: "SETTLEMENT", takes: settles })),
    ]);
    expect([sale.outcome, settlement.outcome].sort()).toEqual(["begun", "repeated"]);
    const closing = settlement.outcome === "begun";
    expect(await terminal(settled)).toEqual({ trace_no: closing ? 2 : 1, batch_closing: closing });
    expect(await terminal(sold)).toEqual({ trace_no: closing ? 1 : 2, batch_closing: false });
  }
});

/** An instance whose connections fail once, at the second that it opens. */
function unlucky(): PostgresTransactions {
  let opened = 0;
  const homes = connections.homes.all.map((home) => {
    const connect = async () => {
      opened += 1;
      if (opened === 2) throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
      return await home.engine.connect();
    };
    return { ...home, engine: { query: home.engine.query.bind(home.engine), connect } as unknown as Pool };
  });
  return new PostgresTransactions({ ...connections, homes: new Homes(homes) });
}

test.each([
  ["", second],
  [", also if its connection is lost then", unlucky()],
])("a terminal that another instance makes and closes meanwhile is judged again before its number%s", async (_, by) => {
  const tid = newTid();
  const judged: (string | undefined)[] = [];
  const refusal = { code: "settlement_in_progress" as const, message: "It is being settled." };
  const other = await connections.pool.connect();
  await other.query("BEGIN");
  await other.query(
    `INSERT INTO terminals (partner_id, tid, mid, trace_no, batch_closing) VALUES ($1, $2, 'M00000000000001', 1, true)`,
    [partnerId, tid],
  );
  const begun = by.begin(
    sampleInit(partnerId, leaseId, {
      tid,
      command: "SETTLEMENT",
      takes: settles,
      refusal: (known) => {
        judged.push(known?.batch);
        return known?.batch === "closing" ? refusal : undefined;
      },
    }),
  );
  await lockWaits(connections.pool);
  await other.query("COMMIT");
  other.release();
  expect(await begun).toEqual({ outcome: "refused", refusal });
  expect(judged).toEqual([undefined, "closing"]);
  expect(await terminal(tid)).toEqual({ trace_no: 1, batch_closing: true });
});

/**
 * Begins a command whose COMMIT is not answered, on an instance that cannot connect from then on, until the caller has
 * been told that nothing was accepted.
 *
 * @param commit called in place of COMMIT
 * @param onLook called after each look for its row
 */
async function beginUnanswered(init: Init, commit: (client: PoolClient) => unknown, onLook = () => {}) {
  const cut = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
  const [home] = connections.homes.all;
  if (home === undefined) throw new Error("There is one.");
  let isCut = false;
  const client = await home.engine.connect();
  const cutClient = {
    query: (statement: string | object) => {
      if (statement !== "COMMIT") return client.query(statement as string);
      isCut = true;
      return Promise.resolve(commit(client)).then(() => Promise.reject(cut));
    },
    release: () => undefined,
  };
  const engine = {
    connect: () => (isCut ? Promise.reject(cut) : Promise.resolve(cutClient)),
    query: async (statement: object) => {
      const result = await home.engine.query(statement as never);
      onLook();
      return result;
    },
  };
  const homes = new Homes([{ ...home, engine: engine as unknown as Pool }]);
  const away = new PostgresTransactions({ engine: home.engine, homes }, { giveUpAfterMs: 0 });
  await expect(away.begin(init)).rejects.toMatchObject({ code: "unavailable" });
  return { id: init.id, client };
}

test("a command whose COMMIT happened without an answer has begun, and is no repeat of itself", async () => {
  const [home] = connections.homes.all;
  if (home === undefined) throw new Error("There is one.");
  let isAnswered = false;
  const connect = async () => {
    const client = await home.engine.connect();
    const query = async (statement: string) => {
      const result = await client.query(statement);
      if (statement === "COMMIT" && !isAnswered) {
        isAnswered = true;
        throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
      }
      return result;
    };
    return { query, release: (destroys?: boolean) => client.release(destroys) };
  };
  const homes = new Homes([{ ...home, engine: { connect } as unknown as Pool }]);
  const init = sampleInit(partnerId, leaseId, { tid: newTid() });
  expect(await new PostgresTransactions({ engine: home.engine, homes }).begin(init)).toMatchObject({
    outcome: "begun",
  });
});

test("a command whose first request began before its terminal got another acquirer is a repeat", async () => {
  const tid = newTid();
  await first.begin(sampleInit(partnerId, leaseId, { tid }));
  const [began, again] = [sampleInit(partnerId, leaseId, { tid }), sampleInit(partnerId, leaseId, { tid })];
  const other = await connections.pool.connect();
  await other.query("BEGIN");
  await other.query("UPDATE terminals SET acquirer = 'bank' WHERE tid = $1", [tid]);
  const begun = second.begin({ ...again, reqId: began.reqId, bodyHash: began.bodyHash });
  await lockWaits(connections.pool);
  await other.query(
    `INSERT INTO transactions (partner_id, id, origin, command, state, req_id, body_hash, chain_id, tid, facts, lease_id)
     VALUES ($1, $2, 'command', 'SALE', 'INIT', $3, $4, $2, $5, '{}', $6)`,
    [partnerId, began.id, began.reqId, began.bodyHash, tid, leaseId],
  );
  await other.query("COMMIT");
  other.release();
  expect(await begun).toEqual({ outcome: "repeated", sameBody: true, id: began.id });
});

test("a command that cannot be looked up leaves no transaction open to the next one", async () => {
  await expect(second.begin(sampleInit(partnerId, leaseId, { reqId: "\0" }))).rejects.toThrow();
  const next = sampleInit(partnerId, leaseId, { tid: newTid() });
  expect(await second.begin(next)).toMatchObject({ outcome: "begun" });
});

const settlement = (tid: string, command: "SETTLEMENT" | "BATCH_UPLOAD" = "SETTLEMENT") =>
  sampleInit(partnerId, leaseId, { tid, command, takes: { ...settles, settlement: command } });

test.each([
  ["SETTLEMENT", false],
  // Another's Settlement, which waits for it.
  ["BATCH_UPLOAD", true],
] as const)(
  "a %s whose COMMIT was not answered is undone, also if that happens later: closing %s",
  async (command, closing) => {
    const [tid, other] = [newTid(), newTid()];
    for (const one of [sampleInit(partnerId, leaseId, { tid }), settlement(other)]) await first.begin(one);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const looked = Promise.withResolvers<void>();
    const { id, client } = await beginUnanswered(
      settlement(tid, command),
      () => undefined,
      () => looked.resolve(),
    );
    await looked.promise;
    await client.query("UPDATE terminals SET batch_closing = true WHERE tid = $1", [tid]);
    await client.query("COMMIT");
    client.release();
    expect(await first.find(partnerId, id)).toMatchObject({ state: "INIT" });
    vi.advanceTimersByTime(1_000);
    await expect.poll(() => first.find(partnerId, id)).toBeUndefined();
    expect(await terminal(tid)).toMatchObject({ batch_closing: closing });
    expect(await terminal(other)).toMatchObject({ batch_closing: true });
  },
);

test("a settlement whose COMMIT was not answered is left to the instance that continues it", async () => {
  const tid = newTid();
  const looked = Promise.withResolvers<void>();
  const settlements = postgresSettlements(connections.homes);
  const { id, client } = await beginUnanswered(
    settlement(tid),
    async (committing) => {
      await committing.query("COMMIT");
      await settlements.claimDue(20, 60_000);
    },
    () => looked.resolve(),
  );
  client.release();
  await looked.promise;
  expect(await first.find(partnerId, id)).toMatchObject({ state: "INIT" });
  expect(await settlements.find(partnerId, id)).toMatchObject({ tries: 1 });
  expect(await terminal(tid)).toMatchObject({ batch_closing: true });
});

test("a REVERSAL whose COMMIT was not answered is left once its Reversal is under way", async () => {
  const tid = newTid();
  const sale = sampleInit(partnerId, leaseId, { tid });
  await first.begin(sale);
  await connections.pool.query("UPDATE transactions SET state = 'SUCCESS', completed_at = now() WHERE id = $1", [
    sale.id,
  ]);
  const takes = { ...settles, traceNo: false, settlement: null };
  const reversal = sampleInit(partnerId, leaseId, { tid, command: "REVERSAL", originalId: sale.id, takes });
  const looked = Promise.withResolvers<void>();
  const { id, client } = await beginUnanswered(
    reversal,
    async (committing) => {
      await committing.query("COMMIT");
      // This instance looks for such commands of its own, too, and may be faster.
      await postgresReversals(connections.homes).queue(partnerId, sale.id, reversal.id);
    },
    () => looked.resolve(),
  );
  client.release();
  await looked.promise;
  expect(await first.find(partnerId, id)).toMatchObject({ state: "INIT" });
  const held = "SELECT successor_id FROM transactions WHERE id = $1";
  expect((await connections.pool.query(held, [sale.id])).rows).toEqual([{ successor_id: id }]);
});

test.each([
  ["SETTLEMENT", 0],
  ["SALE", undefined],
] as const)(
  "a %s whose COMMIT was not answered is left whole to the instance that took it over",
  async (command, tries) => {
    const tid = newTid();
    const looked = Promise.withResolvers<void>();
    const settlements = postgresSettlements(connections.homes);
    const { id, client } = await beginUnanswered(
      command === "SALE" ? sampleInit(partnerId, leaseId, { tid }) : settlement(tid),
      async (committing) => {
        await committing.query("COMMIT");
        await committing.query("UPDATE transactions SET lease_id = gen_random_uuid() WHERE tid = $1", [tid]);
      },
      () => looked.resolve(),
    );
    client.release();
    await looked.promise;
    expect(await first.find(partnerId, id)).toMatchObject({ state: "INIT" });
    expect((await settlements.find(partnerId, id))?.tries).toBe(tries);
  },
);

test("a Void whose COMMIT was not answered is undone, and its original is free again", async () => {
  const tid = newTid();
  const sale = sampleInit(partnerId, leaseId, { tid });
  await first.begin(sale);
  const successorOf = async () => {
    const { rows } = await connections.pool.query(
      "SELECT successor_id, successor_command, successor_state FROM transactions WHERE id = $1",
      [sale.id],
    );
    return rows[0];
  };
  const voiding = sampleInit(partnerId, leaseId, {
    tid,
    command: "VOID",
    originalId: sale.id,
    chainId: sale.chainId,
  });
  const { id, client } = await beginUnanswered(voiding, async (committing) => {
    await committing.query("COMMIT");
    const held = { successor_id: voiding.id, successor_command: "VOID", successor_state: "in_flight" };
    expect(await successorOf()).toEqual(held);
  });
  client.release();
  await expect.poll(() => first.find(partnerId, id)).toBeUndefined();
  expect(await successorOf()).toEqual({ successor_id: null, successor_command: null, successor_state: null });
});

test("commands of one commit are each judged by the state that the one before leaves", async () => {
  const tid = newTid();
  const sale = sampleInit(partnerId, leaseId, { tid });
  await first.begin(sale);
  const inDoubt = { ...{ settlementId: newId(), batchId: newId(), batchNo: "000009", answer: {} }, state: "entered" };
  const change = "UPDATE terminals SET late_settlement = $2, acquirer = 'bank' WHERE tid = $1";
  await connections.pool.query(change, [tid, inDoubt]);
  const terminals: unknown[] = [];
  const refunded: (bigint | undefined)[] = [];
  const refund = () =>
    sampleInit(partnerId, leaseId, {
      tid,
      command: "REFUND",
      originalId: sale.id,
      chainId: sale.chainId,
      amountMinor: 90_000n,
      refusal: (_, original) => void refunded.push(original?.refundedMinor),
    });
  const looks = (at: string, acquirer = "") =>
    sampleInit(partnerId, leaseId, { tid: at, acquirer, refusal: (known) => void terminals.push(known) });
  const [looksFirst, settles, late] = [looks(tid, "bank"), settlement(tid), looks(tid, "bank")];
  const fresh = newTid();
  const opens = sampleInit(partnerId, leaseId, { tid: fresh, currency: "USD" });
  // The first one has a commit of its own, under way; the others share the next.
  const together = [
    refund(),
    refund(),
    refund(),
    looksFirst,
    { ...settles, acquirer: "bank" },
    late,
    opens,
    looks(fresh),
  ];
  await Promise.all([sampleInit(partnerId, leaseId), ...together].map((init) => first.begin(init)));
  expect(refunded).toEqual([0n, 90_000n, 180_000n]);
  const { mid } = sale;
  expect(terminals).toEqual([
    { mid, acquirer: "bank", batch: "open", batchCurrency: "VND", isSettlementInDoubt: true },
    { mid, acquirer: "bank", batch: "closing", batchCurrency: "VND", isSettlementInDoubt: true },
    { mid, acquirer: "", batch: "open", batchCurrency: "USD", isSettlementInDoubt: false },
  ]);
});

test("what was refunded of a Sale is not that of another partner's transaction with the same id", async () => {
  const tid = newTid();
  const sale = sampleInit(partnerId, leaseId, { tid });
  const theirs = { ...sampleInit(await insertPartner(connections.pool), leaseId, { tid }), id: sale.id };
  await Promise.all([first.begin(sale), first.begin(theirs)]);
  const refunded = new Map<string, bigint | undefined>();
  const refund = (of: Init) =>
    sampleInit(of.partnerId, leaseId, {
      ...{ tid, command: "REFUND", originalId: sale.id, chainId: sale.chainId, amountMinor: 90_000n },
      refusal: (_, original) => void refunded.set(of.partnerId, original?.refundedMinor),
    });
  await first.begin(refund(sale));
  // The first one has a commit of its own, under way; the others share the next.
  await Promise.all([sampleInit(partnerId, leaseId), refund(sale), refund(theirs)].map((init) => first.begin(init)));
  expect([...refunded.values()]).toEqual([90_000n, 0n]);
});

test("an original that another instance holds is judged after that, by its own terminal, successor and Refunds", async () => {
  const sales = [newTid(), newTid()].map((tid) => sampleInit(partnerId, leaseId, { tid }));
  await Promise.all(sales.map((sale) => first.begin(sale)));
  const other = await connections.pool.connect();
  const follow = async (sale: Init, command: "VOID" | "REFUND") => {
    const text = `INSERT INTO transactions (partner_id, id, origin, command, state, req_id, chain_id, facts, original_id,
        amount_minor, reversal_state)
      SELECT partner_id, r.id, 'command', $2, 'ERROR', r.id::text, chain_id, '{"fields":{}}', t.id, 90000, 'parked'
      FROM transactions t, gen_random_uuid() AS r (id) WHERE t.id = $1 RETURNING id`;
    return (await other.query<{ id: string }>(text, [sale.id, command])).rows[0]?.id;
  };
  const hold = `UPDATE transactions SET successor_id = $2, successor_command = 'VOID', successor_state = 'in_doubt'
    WHERE id = $1`;
  for (const sale of sales) await other.query(hold, [sale.id, await follow(sale, "VOID")]);
  await other.query("BEGIN");
  for (const { id } of sales) await other.query("SELECT FROM transactions WHERE id = $1 FOR UPDATE", [id]);
  const judged: unknown[] = [];
  const refunds = sales.map(({ id: originalId, tid }) =>
    sampleInit(partnerId, leaseId, {
      ...{ tid, command: "REFUND", originalId },
      refusal: (_, original) => void judged.push(original),
    }),
  );
  const begun = Promise.all(refunds.map((refund) => first.begin(refund)));
  await lockWaits(connections.pool);
  for (const sale of sales) await follow(sale, "REFUND");
  await other.query("COMMIT");
  other.release();
  await begun;
  const successor = { command: "VOID", state: "in_doubt", reversal: "parked" };
  const original = { batch: "open", refundedMinor: 90_000n, successor };
  expect(judged).toMatchObject([original, original]);
});

test("an original whose terminal was removed is still known, in a batch that is closed", async () => {
  const tid = newTid();
  const sale = sampleInit(partnerId, leaseId, { tid });
  await first.begin(sale);
  await connections.pool.query("DELETE FROM terminals WHERE tid = $1", [tid]);
  const batches: (string | undefined)[] = [];
  const refusal: Init["refusal"] = (_, original) => void batches.push(original?.batch);
  await first.begin(sampleInit(partnerId, leaseId, { tid, command: "VOID", originalId: sale.id, refusal }));
  expect(batches).toEqual(["closed"]);
});

test.each(["VOID", "PREAUTH_COMPLETE"] as const)(
  "of two %ss of one original in one commit, one begins",
  async (command) => {
    const [tid, refusal] = [newTid(), { code: "already_voided", message: "It has a successor." } as const];
    const original = sampleInit(partnerId, leaseId, { tid });
    await first.begin(original);
    const next = () =>
      sampleInit(partnerId, leaseId, {
        ...{ tid, command, originalId: original.id, chainId: original.chainId },
        refusal: (_, judged) => (judged?.successor ? refusal : undefined),
      });
    // The first one has a commit of its own, under way; the others share the next.
    const begun = await Promise.all([sampleInit(partnerId, leaseId), next(), next()].map((init) => first.begin(init)));
    expect(begun.map(({ outcome }) => outcome)).toEqual(["begun", "begun", "refused"]);
  },
);
