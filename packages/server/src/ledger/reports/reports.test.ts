import { describe, expect, test } from "vitest";
import type { CompletionRequest } from "../../commands/reports/completion.ts";
import { ServiceError } from "../../errors.ts";
import { newId } from "../../ids.ts";
import { partnerSnapshot } from "../../partners/partner.fixture.ts";
import { createLog } from "../../telemetry/log.ts";
import { createMetrics } from "../../telemetry/metrics.ts";
import type { Reported, ReportedCompletion, ReportedOriginal } from "../store.ts";
import { originalIdentities, Reports } from "./reports.ts";
import { WaitingReports } from "./waiting-reports.ts";

const partner = partnerSnapshot();

/**
 * Accepts reports in memory; each is durable one turn later. `refuses`: those that cannot be made durable; `others`: those
 * that another call reports once this one has begun.
 */
function reportsWith(refuses: readonly string[] = [], others: ReadonlyMap<string, ReportedOriginal> = new Map()) {
  let isBegun = false;
  const durable: ReportedCompletion[] = [];
  const began: { externalId: string; behind: string[] }[] = [];
  const told: string[] = [];
  const events: unknown[] = [];
  const metrics = createMetrics();
  metrics.close();
  const reports = new Reports({
    transactions: {
      findReported: async () => (isBegun ? others : new Map()),
    } as unknown as ConstructorParameters<typeof Reports>[0]["transactions"],
    completions: {
      complete: () => Promise.reject(new Error("A report completes nothing.")),
      release: () => Promise.reject(new Error("A report releases nothing.")),
      report: async (report): Promise<Reported> => {
        isBegun = true;
        began.push({ externalId: report.externalId, behind: durable.map(({ externalId }) => externalId).sort() });
        await new Promise((resolve) => setImmediate(resolve));
        if (refuses.includes(report.externalId)) throw new ServiceError("unavailable");
        const other = others.get(report.externalId);
        if (other !== undefined) return { outcome: "known", id: other.id, before: report };
        durable.push(report);
        return { outcome: "accepted", id: report.id, atMs: 0 };
      },
    },
    directory: {
      find: () => Promise.reject(new Error("the partner's keys do not open")),
      cached: (id) => (id === partner.id ? partner : undefined),
      findByApiKey: async () => undefined,
    },
    notifier: { notify: (notification, atMs) => void told.push(`${notification.id} ${atMs}`) },
    events: { record: (event) => void events.push(event) },
    metrics,
    sandbox: false,
    isRegisteredDevice: async () => false,
  });
  return { reports, began, durable, told, events };
}

function completion(externalId: string, command: CompletionRequest["command"], originalExternalId?: string) {
  const totals = { saleQuantity: "0", saleTotalAmount: "0", voidQuantity: "0", voidTotalAmount: "0" };
  const card = command === "SETTLEMENT" ? totals : { isoResponseCode: "00", amount: "5", currency: "VND" };
  const batch = { tid: "T0000001", mid: "M00000000000001", batchNo: "000017" };
  return { partnerId: partner.id, externalId, command, originalExternalId, status: "SUCCESS", ...card, ...batch };
}

const wholeBatch = [
  completion("reversal of void", "REVERSAL", "void of complete"),
  completion("settlement", "SETTLEMENT"),
  completion("void of complete", "VOID", "complete"),
  completion("complete", "PREAUTH_COMPLETE", "preauth"),
  completion("preauth", "PREAUTH"),
  completion("sale", "SALE"),
  completion("void of another", "VOID", "reported before, or never"),
];

describe("the completions of one report", () => {
  test("a follow-up is written once its original is durable, settlements last, and each has its result", async () => {
    const { reports, began, durable } = reportsWith();
    const results = await reports.report(wholeBatch);
    const chain = ["preauth", "complete", "void of complete"].map((id) => durable.find((one) => one.externalId === id));
    expect(chain.map((one) => one?.chainId)).toEqual(Array(3).fill(chain[0]?.id));
    const followers = durable.flatMap((one) => (one.notification?.follows ? [one.externalId] : [])).sort();
    expect(followers).toEqual(["complete", "void of another", "void of complete"]);
    expect(results.map(({ externalId, result }) => [externalId, result])).toEqual(
      wholeBatch.map(({ externalId }) => [externalId, "accepted"]),
    );
    const first = ["preauth", "sale", "void of another"];
    const behind = new Map(began.map((one) => [one.externalId, one.behind]));
    for (const one of first) expect(behind.get(one)).toEqual([]);
    expect(behind.get("complete")).toEqual(first);
    expect(behind.get("void of complete")).toEqual(["complete", ...first]);
    expect(behind.get("reversal of void")).toEqual(["complete", ...first, "void of complete"]);
    expect(behind.get("settlement")).toEqual(["complete", ...first, "reversal of void", "void of complete"].sort());
  });

  test("nothing is written after a report that could not be made durable: it is reported again with it", async () => {
    const { reports, durable, told } = reportsWith(["sale"]);
    const results = await reports.report(wholeBatch);
    // The Void's notification waits for its original.
    const preAuth = durable.find(({ externalId }) => externalId === "preauth");
    expect(told).toEqual([`${preAuth?.notification?.id} 0`]);
    expect(durable.map(({ externalId }) => externalId).sort()).toEqual(["preauth", "void of another"]);
    expect(results.map(({ externalId, problem }) => [externalId, problem?.code])).toEqual([
      ["reversal of void", "unavailable"],
      ["settlement", "unavailable"],
      ["void of complete", "unavailable"],
      ["complete", "unavailable"],
      ["preauth", undefined],
      ["sale", "unavailable"],
      ["void of another", undefined],
    ]);
  });

  test("a partner whose keys do not open holds up the reports of no other", async () => {
    const { reports, durable } = reportsWith();
    const broken = { ...completion("broken", "SALE"), partnerId: newId<"partner">() };
    const others = [completion("sale", "SALE"), completion("settlement", "SETTLEMENT")];
    const results = await reports.report([broken, ...others]);
    expect(results.map(({ problem }) => problem?.code)).toEqual(["unavailable", undefined, undefined]);
    // A file or a topic waits for it, and its log shows this.
    expect(results[0]?.problem?.message).toContain(broken.partnerId);
    expect(durable.map(({ externalId }) => externalId)).toEqual(["sale", "settlement"]);
  });

  test("an invalid report is refused as such, and delays nothing", async () => {
    const { reports, durable } = reportsWith();
    const bad = { ...completion("bad", "SALE"), amount: "none" };
    const badSettlement = { ...completion("bad settlement", "SETTLEMENT"), status: "DONE" };
    const others = [completion("void", "VOID", "bad"), completion("settlement", "SETTLEMENT")];
    const results = await reports.report([bad, badSettlement, ...others]);
    expect(results.map(({ problem }) => problem?.code)).toEqual([
      "invalid_amount",
      "invalid_value",
      undefined,
      undefined,
    ]);
    expect(durable).toHaveLength(2);
  });

  test("a field with the delimiter of the signature is an event of its transaction", async () => {
    const { reports, durable, events } = reportsWith();
    await reports.report([{ ...completion("sale", "SALE"), merchantTransId: "a&b" }]);
    const detail = { fields: [expect.objectContaining({ field: "merchantTransId" })] };
    expect(events).toMatchObject([{ kind: "delimiter_sent", subjectId: durable[0]?.id, detail }]);
  });

  test("a follow-up of one that another call has just reported belongs to the transaction of that call", async () => {
    const [id, chainId] = [newId<"transaction">(), newId<"chain">()];
    const other = { id, chainId, command: "SALE", reqId: null, batchId: null } as const;
    const { reports, durable } = reportsWith([], new Map([["sale", other]]));
    const results = await reports.report([completion("sale", "SALE"), completion("void", "VOID", "sale")]);
    expect(results).toMatchObject([{ result: "duplicate", transactionId: id }, { result: "accepted" }]);
    expect(durable).toMatchObject([{ externalId: "void", originalId: id, chainId }]);
  });

  test("two that refer to each other are both written", async () => {
    const { reports, durable } = reportsWith();
    const results = await reports.report([completion("one", "VOID", "other"), completion("other", "VOID", "one")]);
    expect(results.map(({ result }) => result)).toEqual(["accepted", "accepted"]);
    expect(durable).toHaveLength(2);
  });

  test("its command decides what it is: a PreAuth with a batchNo, and a Sale without one", async () => {
    const { reports, durable } = reportsWith();
    const [sale, preAuth] = [{ ...completion("sale", "SALE"), batchNo: "" }, completion("preauth", "PREAUTH")];
    await reports.report([sale, preAuth, completion("v1", "VOID", "sale"), completion("v2", "VOID", "preauth")]);
    const kinds = durable.map(({ externalId, command, facts, notification }) => {
      const voidsPreAuth = facts.kind === "card" && facts.voidsPreAuth === true;
      return [externalId, command, notification?.command, voidsPreAuth];
    });
    expect(kinds).toEqual([
      ["sale", "SALE", "SALE", false],
      ["preauth", "PREAUTH", "PREAUTH", false],
      ["v1", "VOID", "VOID", false],
      ["v2", "VOID", "VOID", true],
    ]);
  });

  test("a settlement is written once its Sales are durable, and has their batch for the order of delivery", async () => {
    const { reports, durable, began } = reportsWith();
    await reports.report([completion("settlement", "SETTLEMENT"), completion("sale", "SALE")]);
    expect(began.map(({ behind }) => behind)).toEqual([[], ["sale"]]);
    const [sale, settlement] = durable;
    expect(sale?.batchId).toEqual(expect.any(String));
    expect(settlement).toMatchObject({ batchId: sale?.batchId, notification: { settlesBatch: sale?.batchId } });
    expect(sale?.notification?.settlesBatch).toBeNull();
  });
});

test.each([
  ["VOID", ["PREAUTH_COMPLETE", "SALE", "PREAUTH"]],
  ["PREAUTH_COMPLETE", ["PREAUTH"]],
  ["REVERSAL", ["PREAUTH_COMPLETE", "SALE", "PREAUTH", "VOID"]],
] as const)("of those that share a number, a %s means the one that it can undo", (command, originals) => {
  const identity = "externalId+command";
  const keys = [...originals.map((original) => `7 #${original}`), "7"];
  expect(originalIdentities({ identity }, { command, originalExternalId: "7" })).toEqual(keys);
});

test.each([
  [500, "looks again in 1000 ms"],
  [20_000, "looks again in 20000 ms"],
  [300_000, "looks again in 60000 ms"],
  [590_000, "looks again in 10000 ms"],
  [600_000, "is notified without it"],
])("a Void whose original is unknown for %i ms %s", async (ageMs, then) => {
  const happened = Promise.withResolvers<string>();
  const facts = { kind: "card", command: "VOID", fields: {} } as const;
  const of = { partnerId: partner.id, id: newId<"transaction">(), notificationId: newId<"notification">() };
  const report = { ...of, identity: "7", originalExternalId: "7", callBackUrl: null, facts, batchId: null, ageMs };
  const due = [report];
  const waiting = new WaitingReports({
    waiting: {
      claimDue: async () => due.splice(0),
      postpone: async (_, delayMs) => happened.resolve(`looks again in ${delayMs} ms`),
    },
    // The report itself is no original of its own.
    transactions: { findReported: async () => new Map([["7", {} as never]]) },
    completions: { release: async () => void happened.resolve("is notified without it") },
    directory: { find: async () => partner },
    notifier: { notify: () => undefined },
    metrics: { notificationsCreated: { inc: () => undefined } as never },
    log: createLog("error", { write: (line) => happened.reject(new Error(line)) }),
  });
  waiting.start();
  waiting.wake();
  expect(await happened.promise).toBe(then);
  await waiting.stop();
});
