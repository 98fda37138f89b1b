import { createSecretKey } from "node:crypto";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { dumpRows } from "../../../../../test/support/rows.ts";
import type { AcquirerMessage } from "../../acquirer/acquirer.ts";
import { onlyAcquirer } from "../../acquirer/only-acquirer.fixture.ts";
import { SimulatedAcquirer } from "../../acquirer/simulator/simulator.ts";
import { type ChainId, newId } from "../../ids.ts";
import { postgresCards, sweepCards } from "../../store/transactions/cards.ts";
import { createLog } from "../../telemetry/log.ts";
import { bookUnmatched, LedgerBench, LedgerTill } from "../ledger.fixture.ts";
import type { Transaction } from "../store.ts";
import { CardVault } from "./card-vault.ts";

const preAuthDays = 30;
const card = { cardToken: "tok_approve", swipeType: "C", expDate: "12/29" };

let till: LedgerTill;
let asked: AcquirerMessage[];
let ends: () => void;
const bench = await LedgerBench.open({ wantsCards: true });
const instance = await bench.start();
const partner = await bench.partner({ refunds: "notified" });
const cards = postgresCards(bench.connections.homes);
afterAll(() => bench.close());
beforeEach(() => {
  till = new LedgerTill();
  asked = [];
  ends = instance.acquirer.behave((message) => {
    asked.push(message);
    return undefined;
  });
});
afterEach(() => ends());

function withExpiry<Request extends { readonly card: object }>(request: Request): Request {
  return { ...request, card: { ...request.card, expiry: card.expDate } };
}
const sale = (token?: string) => instance.ended(partner, withExpiry(till.sale(token)));
const askedFor = (command: AcquirerMessage["command"]) => asked.filter((message) => message.command === command);

/** Whether the card of a transaction is still stored after a sweep. */
async function isKept({ chainId }: Transaction): Promise<boolean> {
  await bench.query("UPDATE cards SET look_at = now()");
  await sweepCards(bench.connections.homes, preAuthDays);
  return (await cards.find(partner.id, [chainId])).size === 1;
}

/** Two days after its Reversal was requested no late approval can arrive. */
async function twoDaysAfterReversalOf({ id }: Transaction): Promise<void> {
  await bench.query("UPDATE reversals SET created_at = now() - interval '49 hours' WHERE transaction_id = $1", [id]);
}

describe("the card of a transaction", () => {
  test("is sent with its Void, its PreAuth-Complete, the Void of that and its Reversal, by any instance", async () => {
    await instance.ended(partner, till.void(await sale()));
    const preAuth = await instance.ended(partner, withExpiry(till.preAuth()));
    const complete = await instance.ended(partner, till.complete(preAuth));
    await instance.ended(partner, till.reversal(complete));
    const other = await instance.ended(partner, withExpiry(till.preAuth()));
    await instance.ended(partner, till.void(await instance.ended(partner, till.complete(other))));
    const gone = await bench.start();
    const crashed = gone.crashesAt({ at: "ask", phase: "after" });
    const lost = await gone.begun(partner, withExpiry(till.sale()));
    await crashed;
    await instance.takeOver(partner);
    await bench.reversed(lost.id);
    for (const command of ["VOID", "PREAUTH_COMPLETE", "REVERSAL"] as const) {
      expect(askedFor(command).length, command).toBeGreaterThan(0);
      for (const message of askedFor(command)) expect(message).toMatchObject(card);
    }
    expect(askedFor("VOID")).toHaveLength(2);
    expect(askedFor("REVERSAL")).toHaveLength(2);
  });

  test("is in the upload of its batch", async () => {
    await sale();
    bookUnmatched(bench, till);
    await instance.ended(partner, till.settlement());
    expect(askedFor("BATCH_UPLOAD")).toEqual([expect.objectContaining(card)]);
  });

  test("is stored while its batch is open, and deleted once that is settled", async () => {
    const first = await sale();
    const voided = await sale();
    await instance.ended(partner, till.void(voided));
    expect([await isKept(first), await isKept(voided)]).toEqual([true, true]);
    await instance.ended(partner, till.settlement());
    expect([await isKept(first), await isKept(voided)]).toEqual([false, false]);
    const refund = await instance.ended(partner, till.refund(first));
    expect(refund.state).toBe("SUCCESS");
    expect(askedFor("REFUND")[0]).not.toHaveProperty("cardToken");
  });

  test("is deleted at once if it was declined", async () => {
    expect(await isKept(await sale("tok_decline_51"))).toBe(false);
  });

  test("is stored while its Reversal is running or parked, and two days longer for late answers", async () => {
    instance.nextFares("REVERSAL", { declines: "05" });
    const parked = await sale("tok_timeout");
    await expect.poll(() => bench.reversalOf(parked.id)).toMatchObject({ state: "PARKED" });
    await twoDaysAfterReversalOf(parked);
    expect(await isKept(parked)).toBe(true);
    const reversed = await sale("tok_timeout");
    await bench.reversed(reversed.id);
    expect(await isKept(reversed)).toBe(true);
    const undone = await sale();
    await instance.ended(partner, till.reversal(undone));
    for (const one of [reversed, undone]) {
      await twoDaysAfterReversalOf(one);
      expect(await isKept(one)).toBe(false);
    }
  });

  test("of a PreAuth is stored until it is voided, completed and settled, or expired", async () => {
    const [voided, completed, left] = await Promise.all(
      [1, 2, 3].map(() => instance.ended(partner, withExpiry(till.preAuth()))),
    );
    if (!voided || !completed || !left) throw new Error("three were begun");
    await instance.ended(partner, till.settlement());
    expect([await isKept(voided), await isKept(completed), await isKept(left)]).toEqual([true, true, true]);
    await instance.ended(partner, till.void(voided));
    await instance.ended(partner, till.complete(completed));
    expect([await isKept(voided), await isKept(completed)]).toEqual([false, true]);
    await instance.ended(partner, till.settlement());
    expect([await isKept(completed), await isKept(left)]).toEqual([false, true]);
    await bench.query("UPDATE transactions SET created_at = now() - interval '31 days' WHERE id = $1", [left.id]);
    expect(await isKept(left)).toBe(false);
  });

  test("of a command in flight is stored", async () => {
    const begun = await instance.begun(partner, till.sale("tok_slow_100"));
    expect(await isKept(begun)).toBe(true);
    await instance.endOf(begun);
  });

  test("is sealed and in one table only: no other row and no log line contains its token", async () => {
    const token = "tok_approve_08";
    const one = await sale(token);
    await bench.reversed(one.id);
    expect(askedFor("REVERSAL")[0]).toMatchObject({ cardToken: token });
    const rows = await dumpRows(bench.database);
    expect(rows).toContain(`"chain_id": "${one.chainId}"`);
    expect(rows).not.toContain("tok_");
    expect(rows).not.toContain(Buffer.from("tok_").toString("hex"));
    expect(instance.logged.join("\n")).not.toContain("tok_");
  });

  test("is not stored if the acquirer does not want it", async () => {
    const plain = await LedgerBench.open();
    try {
      const other = await plain.start();
      await other.ended(await plain.partner(), till.sale());
      expect(await plain.query("SELECT FROM cards")).toEqual([]);
    } finally {
      await plain.close();
    }
  });
});

describe("a sealed card", () => {
  const logged: string[] = [];
  const log = createLog("info", { write: (line: string) => void logged.push(line) });
  const [own, other] = [newId<"chain">() as ChainId, newId<"chain">() as ChainId];

  const acquirers = onlyAcquirer(Object.assign(new SimulatedAcquirer(), { wantsCards: true }));

  function vaultOf(sealed: Buffer, key = 1) {
    const cards = {
      find: (_: unknown, ids: readonly ChainId[]) => Promise.resolve(new Map(ids.map((id) => [id, sealed]))),
    };
    return new CardVault({ cards, acquirers, key: createSecretKey(Buffer.alloc(32, key)), log });
  }

  test("opens only in its row and under its key; a Reversal is sent without one that does not open", async () => {
    const owner = { partnerId: partner.id, chainId: own, acquirer: "" };
    const sealed = vaultOf(Buffer.alloc(0)).seal(owner, card) ?? Buffer.alloc(0);
    expect(await vaultOf(sealed).of(owner)).toEqual(card);
    expect(vaultOf(sealed).seal({ ...owner, acquirer: "another" }, card)).toBeNull();
    expect(logged).toEqual([]);
    expect(await vaultOf(sealed).of({ ...owner, chainId: other })).toEqual({});
    expect(await vaultOf(sealed).of({ ...owner, partnerId: newId<"partner">() })).toEqual({});
    expect(await vaultOf(sealed, 2).of(owner)).toEqual({});
    sealed[20] = (sealed[20] ?? 0) ^ 1;
    expect(await vaultOf(sealed).of(owner)).toEqual({});
    expect(logged).toHaveLength(4);
    expect(logged.join()).not.toContain(card.cardToken);
  });
});
