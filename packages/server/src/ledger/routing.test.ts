import { afterAll, beforeEach, describe, expect, test } from "vitest";
import type { AcquirerMessage } from "../acquirer/acquirer.ts";
import { SimulatedBank } from "../acquirer/simulator/bank.ts";
import { SimulatedAcquirer } from "../acquirer/simulator/simulator.ts";
import { completeTerminal } from "../partners/terminal.ts";
import { postgresTerminals } from "../store/terminals/terminals.ts";
import { LedgerBench, type LedgerInstance, LedgerTill } from "./ledger.fixture.ts";

const preAuthDays = 30;
const names = ["", "second", "third"] as const;
type Name = (typeof names)[number];

let till: LedgerTill;
/** Every message, by the acquirer that was asked. */
let asked: Record<Name, AcquirerMessage["command"][]>;

/** The books of each acquirer, which all processes see. */
const banks = new Map(names.slice(1).map((name) => [name, new SimulatedBank({ strict: true })]));
const bench = await LedgerBench.open();
for (const name of names.slice(1)) {
  await bench.query(
    `INSERT INTO acquirers (name, profile, hosts, tls, ca, certificate, version)
     VALUES ($1, '{}', '{}', false, '', '', gen_random_uuid())`,
    [name],
  );
}
const instance = await started();
const partner = await bench.partner({ refunds: "notified" });
const terminals = postgresTerminals(bench.connections.homes);
afterAll(() => bench.close());
beforeEach(() => {
  till = new LedgerTill();
  asked = { "": [], second: [], third: [] };
});

/** One process whose acquirers record what they were asked. */
async function started(): Promise<LedgerInstance> {
  const one = await bench.start();
  for (const [name, bank] of banks) one.others.set(name, new SimulatedAcquirer({ bank, lateByMs: 50 }));
  const acquirers = [["", one.acquirer] as const, ...one.others];
  for (const [name, acquirer] of acquirers) {
    acquirer.behave(({ command }) => {
      asked[name as Name].push(command);
      return undefined;
    });
  }
  return one;
}

function put(acquirer: string, of = till) {
  return terminals.upsert(partner.id, completeTerminal(of.tid, { mid: of.mid, acquirer }), preAuthDays);
}

describe("a terminal's acquirer", () => {
  test("is asked for its Sale and for all that follows; the one of the settings for other terminals", async () => {
    await put("second");
    const sale = await instance.ended(partner, till.sale());
    expect(sale).toMatchObject({ state: "SUCCESS", acquirer: "second" });
    await instance.ended(partner, till.void(sale));
    const preAuth = await instance.ended(partner, till.preAuth());
    const completed = await instance.ended(partner, till.complete(preAuth));
    const reversed = await instance.ended(partner, till.sale("tok_approve", "7"));
    await instance.ended(partner, till.reversal(reversed));
    await instance.ended(partner, till.settlement());
    await instance.ended(partner, till.refund(completed, "5"));
    await instance.ended(partner, till.logon());
    await instance.ended(partner, till.batchUpload());
    expect(asked.second).toEqual([
      ...(["SALE", "VOID", "PREAUTH", "PREAUTH_COMPLETE", "SALE", "REVERSAL", "SETTLEMENT", "REFUND"] as const),
      ...(["LOGON", "BATCH_UPLOAD"] as const),
    ]);
    expect(asked[""]).toEqual([]);
    await instance.ended(partner, new LedgerTill().sale());
    expect(asked[""]).toEqual(["SALE"]);
    expect(asked.third).toEqual([]);
  });

  test("stays while its batch is not empty or a PreAuth is open; then commands go to the new one", async () => {
    await put("second");
    await instance.ended(partner, till.sale());
    expect(await put("third")).toEqual({ outcome: "busy" });
    expect(await put("")).toEqual({ outcome: "busy" });
    await instance.ended(partner, till.settlement());
    const preAuth = await instance.ended(partner, till.preAuth());
    expect(await put("third")).toEqual({ outcome: "busy" });
    await instance.ended(partner, till.void(preAuth));
    expect(await put("third")).toMatchObject({ outcome: "put", terminal: { acquirer: "third" } });
    // This instance has read the old one, and nobody has told it.
    expect(await instance.ended(partner, till.sale())).toMatchObject({ state: "SUCCESS", acquirer: "third" });
    expect(asked.third).toEqual(["SALE"]);
  });

  test("gives no Refund of what another acquirer charged: a terminal of that one does", async () => {
    await put("second");
    const sale = await instance.ended(partner, till.sale());
    await instance.ended(partner, till.settlement());
    await put("third");
    await expect(instance.run(partner, till.refund(sale, "1"))).rejects.toMatchObject({
      status: 409,
      code: "other_acquirer",
    });
    const other = new LedgerTill();
    const unknown = instance.run(partner, { ...till.refund(sale, "1"), tid: other.tid });
    await expect(unknown, "of the acquirer of the settings").rejects.toMatchObject({ code: "other_acquirer" });
    await put("second", other);
    asked.second = [];
    const refund = { ...till.refund(sale, "1"), tid: other.tid };
    expect(await instance.ended(partner, refund)).toMatchObject({ state: "SUCCESS", acquirer: "second" });
    expect(asked.second).toEqual(["REFUND"]);
  });

  test("gives no Refund of what another merchant charged: a terminal of that one does", async () => {
    await put("second");
    const sale = await instance.ended(partner, till.sale());
    await instance.ended(partner, till.settlement());
    const moved = completeTerminal(till.tid, { mid: "M00000000000002", acquirer: "second" });
    await terminals.upsert(partner.id, moved, preAuthDays);
    const refused = instance.run(partner, till.refund(sale, "1"));
    await expect(refused).rejects.toMatchObject({ status: 409, code: "terminal_mid_mismatch" });
    const other = new LedgerTill();
    await put("second", other);
    const refund = { ...till.refund(sale, "1"), tid: other.tid };
    expect(await instance.ended(partner, refund)).toMatchObject({ state: "SUCCESS" });
  });

  test("is asked for the Reversal of what another instance left in doubt", async () => {
    const gone = await started();
    await put("second");
    const dies = gone.crashesAt({ at: "complete", phase: "before" });
    void gone.run(partner, till.sale(), true);
    await dies;
    await instance.takeOver(partner);
    await bench.quiet(partner);
    // A Reversal that a busy machine answers late is repeated.
    expect([...new Set(asked.second)]).toEqual(["SALE", "REVERSAL"]);
    expect(asked).toMatchObject({ "": [], third: [] });
  });

  test("that is not there has its commands refused before anything is accepted", async () => {
    await put("second");
    const fresh = await bench.start();
    fresh.others.set("third", new SimulatedAcquirer());
    await expect(fresh.run(partner, till.sale())).rejects.toMatchObject({ status: 503, code: "no_acquirer" });
    const rows = await bench.query("SELECT FROM transactions WHERE tid = $1", [till.tid]);
    expect(rows).toEqual([]);
  });

  test.each(["away", "removed"])("that is %s holds up no terminal that has another one by now", async (how) => {
    await put("second");
    const one = await started();
    const first = till.sale("tok_decline_51", "1");
    const sale = (amount: string) => one.run(partner, till.sale("tok_decline_51", amount));
    const { transaction } = await one.run(partner, first);
    expect(transaction).toMatchObject({ acquirer: "second" });
    const away = async () => ({ code: "acquirer_unreachable" as const, detail: "it is away" });
    if (how === "away") Object.assign(one.others.get("second") as SimulatedAcquirer, { away });
    else one.others.delete("second");
    const code = how === "away" ? "acquirer_unreachable" : "no_acquirer";
    await expect(sale("2")).rejects.toMatchObject({ code });
    const { id, state } = transaction;
    expect(await one.run(partner, first), "what has a result").toMatchObject({ transaction: { id, state } });
    await put("third");
    expect(await sale("3")).toMatchObject({ transaction: { acquirer: "third" } });
    Object.assign(one.others.get("third") as SimulatedAcquirer, {
      refusesToken: () => "Its host knows no such token.",
    });
    await expect(sale("4")).rejects.toMatchObject({ code: "unknown_test_card" });
    expect(await one.run(partner, first), "it takes no such token").toMatchObject({ transaction: { id, state } });
  });

  test("is not needed for what has a result, when there is none any more", async () => {
    const one = await started();
    const first = till.sale();
    const { id, state } = await one.ended(partner, first);
    Object.assign(one.acquirers, { names: () => [], has: () => false });
    await expect(one.run(partner, till.sale())).rejects.toMatchObject({ code: "no_acquirer" });
    expect(await one.run(partner, first)).toMatchObject({ transaction: { id, state } });
  });

  test("judges the card's token: each takes what its host knows", async () => {
    await put("second");
    const only = Object.assign(new SimulatedAcquirer(), { refusesToken: () => "The host knows no such token." });
    instance.others.set("second", only);
    await expect(instance.run(partner, till.sale())).rejects.toMatchObject({ code: "unknown_test_card" });
    expect(await instance.ledger.refusesToken(partner.id, till.tid, "tok_approve")).toBeDefined();
    await put("third");
    expect(await instance.ended(partner, till.sale())).toMatchObject({ state: "SUCCESS", acquirer: "third" });
    await only.close();
  });

  test("is one that is registered, and gives a mid and tid to one partner", async () => {
    expect(await put("nobody")).toEqual({ outcome: "no_such_acquirer" });
    await put("second");
    const stranger = await bench.partner();
    const terminal = (acquirer: string) => completeTerminal(till.tid, { mid: till.mid, acquirer });
    expect(await terminals.upsert(stranger.id, terminal("second"), preAuthDays)).toMatchObject({
      outcome: "taken",
      isRegistered: true,
    });
    expect(await terminals.upsert(stranger.id, terminal("third"), preAuthDays)).toMatchObject({ outcome: "put" });
  });
});
