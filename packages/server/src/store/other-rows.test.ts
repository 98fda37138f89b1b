import { beforeEach, expect, test } from "vitest";
import { openTestDatabase } from "../../../../test/support/connections.ts";
import { type ChainId, type NotificationId, newId, type PartnerId, type TransactionId } from "../ids.ts";
import type { DueReversal } from "../ledger/reversals/reverser.ts";
import type { DueSettlement } from "../ledger/settlements/store.ts";
import type { BatchEnd, Completion } from "../ledger/store.ts";
import { postgresEndpoints } from "./deliveries/circuits.ts";
import { PostgresDeliveries } from "./deliveries/deliveries.ts";
import { readContents, writePull } from "./notifications/page.ts";
import { redeliverAll } from "./notifications/redeliver.ts";
import { readAttempts, readStatuses } from "./notifications/status.ts";
import { postgresPartnerMessages } from "./partners/messages.ts";
import { postgresPartners } from "./partners/partners.ts";
import { postgresReversals } from "./reversals/reversals.ts";
import { createHistory, insertLease, sampleFacts, sampleInit, sampleNotification } from "./rows.fixture.ts";
import { dayMs } from "./schema/partitions.ts";
import { postgresComparisons } from "./settlements/comparisons.ts";
import { postgresSettlements } from "./settlements/settlements.ts";
import { isRegisteredDevice, postgresTerminals } from "./terminals/terminals.ts";
import { postgresCards } from "./transactions/cards.ts";
import { PostgresCompletions } from "./transactions/completions.ts";
import { postgresWaitingReports } from "./transactions/due.ts";
import { LedgerRetention } from "./transactions/ledger-retention.ts";
import { postgresMoney } from "./transactions/search.ts";
import { PostgresTransactions, readReqId } from "./transactions/transactions.ts";

// A statement that lacks a condition changes, or returns, rows of others. Beside the rows of a test, each in the same
// state: those of another terminal of the partner, and those of another partner with the same ids and numbers.

const connections = await openTestDatabase();
const { pool, homes } = connections;
await createHistory(pool);
const leaseId = await insertLease(pool);
// Its rows come first in each index.
const [otherPartner, partnerId, taker] = [newId<"partner">(), newId<"partner">(), newId<"partner">()];
await pool.query("INSERT INTO partners (id, state, settings) SELECT i, 'active', '{}' FROM unnest($1::uuid[]) AS i", [
  [partnerId, otherPartner, taker],
]);

const newIds = (tid: string) => ({
  tid,
  batchId: newId(),
  original: newId<"transaction">(),
  follower: newId<"transaction">(),
  sale: newId<"transaction">(),
  settlement: newId<"transaction">(),
  report: newId<"transaction">(),
  reported: newId<"transaction">(),
  pending: newId<"notification">(),
  parked: newId<"notification">(),
  accepted: newId<"notification">(),
  endpoint: newId<"endpoint">(),
  key: newId<"key">(),
  reqId: newId(),
});
type Ids = ReturnType<typeof newIds>;
const [own, sibling] = [newIds("T0000001"), newIds("T0000002")];

function rowsOf(partner: PartnerId, ids: Ids): Readonly<Record<string, readonly object[]>> {
  const { tid, batchId, original, follower, sale, settlement, report, pending, parked } = ids;
  const fields = { tid, mid: "M1", batchNo: "000001", traceNo: "000007", owner: partner };
  const command = (id: TransactionId, more: object) => ({
    id,
    origin: "command",
    state: "INIT",
    command: "SALE",
    req_id: id,
    chain_id: original,
    facts: { kind: "card", fields },
    tid,
    batch_id: batchId,
    lease_id: leaseId,
    amount_minor: 100,
    currency: "VND",
    ...more,
  });
  const acquirer = partner === partnerId && tid === own.tid ? "" : "another";
  const reported = { origin: "switch", state: "SUCCESS", batch_id: null, tid: null, reported_batch: batchId };
  const notified = { command: "SALE", chain_id: original, content: sampleFacts({ owner: partner }) };
  const late = { settlementId: settlement, batchId, batchNo: "000001", state: "entered", owner: partner };
  return {
    terminals: [
      {
        tid,
        mid: "M1",
        device_id: partner + tid,
        acquirer,
        batch_id: batchId,
        late_settlement: late,
        batch_closing: true,
      },
    ],
    terminal_claims: [
      { tid, mid: "M1", acquirer, is_registered: false },
      ...(partner === otherPartner ? [{ tid: "T0000000", mid: "M1", acquirer: "", is_registered: false }] : []),
    ],
    transactions: [
      command(original, {
        state: "SUCCESS",
        completed_at: "now",
        lease_id: null,
        successor_id: follower,
        successor_command: "VOID",
        successor_state: "in_doubt",
      }),
      command(follower, { command: "VOID", original_id: original, reversal_state: "pending" }),
      command(sale, { chain_id: sale }),
      command(settlement, { command: "SETTLEMENT", chain_id: settlement, batch_id: null }),
      command(ids.reported, { ...reported, external_id: `X-${ids.reported}` }),
      command(report, {
        ...reported,
        command: "SETTLEMENT",
        external_id: `X-${report}`,
        compare_at: "now",
        notify_at: "now",
        facts: { kind: "settlement", fields, settlementList: [{ reqId: report, refNo: "" }] },
      }),
    ],
    reversals: [{ transaction_id: follower, tid, tries: 1, state: "PENDING" }],
    settlements: [{ id: settlement, kind: "SETTLEMENT", tid, batch_id: batchId, tries: 1 }],
    cards: [{ chain_id: original, sealed: `\\x${partner.replaceAll("-", "")}` }],
    notifications: [
      { id: pending, transaction_id: original, ...notified },
      { id: parked, transaction_id: follower, ...notified },
      { id: ids.accepted, transaction_id: sale, ...notified },
    ],
    attempts: [pending, parked].map((id) => ({
      ...{ id, round: 0, attempt_no: 1, lease_id: leaseId, started_at: "now", duration_ms: 1, url: "https://x" },
    })),
    pending: [
      { id: pending, queue: tid, chain_id: original, due_at: "now", attempts_made: 1, bytes: 10, follows: true },
    ],
    parked: [{ id: parked, chain_id: original, round: 0, attempts_made: 1, bytes: 10, reason: "timeout" }],
    endpoints: [{ id: ids.endpoint, target: tid, queue: tid, kind: "origin", state: "open", probe_at: "infinity" }],
    partner_keys: [
      { id: ids.key, kind: "apiKey", material: `\\x${`${partner}${ids.key}`.replaceAll("-", "")}`, name: tid },
    ],
  };
}

const tables = [
  ...Object.keys(rowsOf(partnerId, own)),
  "batches",
  "events",
  "partner_messages",
  "pulls",
  "redeliveries",
];

async function insertRows(partner: PartnerId, ids: Ids): Promise<void> {
  for (const [table, rows] of Object.entries(rowsOf(partner, ids))) {
    for (const row of rows) {
      const columns = ["partner_id", ...Object.keys(row)].join(", ");
      const text = `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM json_populate_record(NULL::${table}, $1)`;
      await pool.query(text, [JSON.stringify({ partner_id: partner, ...row })]);
    }
  }
}

const othersRows = `r.partner_id = '${otherPartner}' OR r::text ~ '${Object.values(sibling).join("|")}'`;

async function rows(): Promise<Readonly<Record<"own" | "others", readonly string[]>>> {
  const each = tables.map((table) => `SELECT ${othersRows} AS others, '${table} ' || r::text AS row FROM ${table} r`);
  each.push(`SELECT id = '${otherPartner}', 'partners ' || p::text FROM partners p`);
  const { rows: all } = await pool.query<{ others: boolean; row: string }>(`${each.join(" UNION ALL ")} ORDER BY row`);
  const of = (others: boolean) => all.filter((one) => one.others === others).map(({ row }) => row);
  return { own: of(false), others: of(true) };
}

await insertRows(otherPartner, own);
await insertRows(partnerId, sibling);
await insertRows(partnerId, own);
const { rows: copies } = await pool.query<{ keep: string; restore: string }>(
  `SELECT format('CREATE TABLE kept_%1$s AS SELECT %2$s FROM %1$s', t, columns) AS keep,
     format('DELETE FROM %1$s; INSERT INTO %1$s (%2$s) SELECT %2$s FROM kept_%1$s', t, columns) AS restore
   FROM unnest($1::text[]) AS t CROSS JOIN LATERAL (
     SELECT string_agg(column_name, ', ') AS columns FROM information_schema.columns
     WHERE table_name = t AND is_generated = 'NEVER') AS c`,
  [tables],
);
await pool.query(copies.map(({ keep }) => keep).join("; "));
beforeEach(() => pool.query(copies.map(({ restore }) => restore).join("; ")));

const reversals = postgresReversals(homes);
const settlements = postgresSettlements(homes);
const comparisons = postgresComparisons(homes);
const waiting = postgresWaitingReports(homes);
const transactions = new PostgresTransactions(connections);
const completions = new PostgresCompletions(homes);
const deliveries = new PostgresDeliveries(homes);
const endpoints = postgresEndpoints(connections);
const messages = postgresPartnerMessages(pool);
const partners = postgresPartners(connections);
const terminals = postgresTerminals(homes);
const money = postgresMoney(homes);
const clock = { nowMs: () => Date.now() + 100 * dayMs };
const retention = new LedgerRetention({ homes, clock, ledgerDays: 90, onDropped: () => undefined });

const { tid, batchId, original, follower, sale, settlement, report, pending, parked, accepted } = own;
const reversal = { partnerId, transactionId: follower, tries: 1 } as DueReversal;
const done = { state: "DONE", responseCode: "00" } as const;
const due: DueSettlement = {
  ...({ partnerId, id: settlement, kind: "SETTLEMENT", tid, batchId, step: "waiting" } as const),
  ...{ isUploaded: false, uploadedUpTo: null, tries: 1 },
};
const counted = { saleQuantity: 1, saleTotalMinor: 100n, voidQuantity: 0, voidTotalMinor: 0n };
const totals = { currency: "VND", ...counted, refundQuantity: 0, refundTotalMinor: 0n };
const late = {
  settlementId: settlement,
  batchId,
  batchNo: "000001",
  answer: { responseCode: "00", refId: "" },
  totals,
};

function complete(id: TransactionId, effects: Partial<Completion>): Promise<unknown> {
  const nothing = { notification: null, original: null, reversal: null, batch: null };
  return completions.complete({
    ...{ partnerId, id, leaseId, state: "SUCCESS", facts: sampleFacts(), ...nothing, ...effects },
  });
}
const endBatch = (becomes: BatchEnd["becomes"]) => complete(settlement, { batch: { tid, batchId, becomes, totals } });

const onlyOthersInFlight = ["transactions", "reversals"]
  .map((table) => `DELETE FROM ${table} r WHERE NOT (${othersRows})`)
  .join("; ");
const allParked = "UPDATE reversals SET state = 'PARKED'";
/** Those of others are not: a PreAuth is open, a command in flight, a Reversal pending, a batch closing. */
const free = `UPDATE reversals r SET state = 'PARKED' WHERE NOT (${othersRows});
  UPDATE terminals r SET batch_closing = false, late_settlement = NULL, batch_id = gen_random_uuid()
    WHERE NOT (${othersRows});
  UPDATE transactions r SET state = 'ERROR' WHERE state = 'INIT' AND NOT (${othersRows});
  UPDATE transactions SET command = 'PREAUTH', state = 'SUCCESS' WHERE id = '${sibling.sale}'`;
const terminal = {
  ...{ tid, mid: "M1", merchantId: "", merchantName: "", merchantAddress: "", deviceId: "", appName: "" },
  acquirer: "",
};
const newKey = { id: newId<"key">(), kind: "apiKey", material: Buffer.alloc(32, 1) } as const;

const delivery = { partnerId, id: pending, round: 0, attemptsBefore: 0, attemptsMade: 1 };
const attempt = {
  ...{ startedAtMs: Date.now(), durationMs: 1, url: "https://x", address: null, httpStatus: 500 },
  ...{ reason: "http_status", detail: null, answer: null, keyId: null },
} as const;
const record = (next: object, id: NotificationId = pending) =>
  deliveries.record({ ...delivery, id, leaseId, attempt, next, circuits: [] } as never);
const redeliver = (id: NotificationId, to: "original" | "registered" = "registered") =>
  redeliverAll(pool, { ensureDays: async () => undefined }, { partnerId, ids: [id], to, redelivery: undefined });
// A redelivery probes every tripped endpoint of its partner.
const laterAndTripped = `UPDATE pending SET due_at = now() + interval '1 day';
  UPDATE endpoints SET state = 'closed' WHERE queue = '${sibling.tid}'`;
const noLate = "UPDATE terminals SET late_settlement = NULL";
const message = ["failing", "webhook"] as const;
/** The messages of both partners: those of other kinds, or other channels, are others' rows. */
const informed = (isOwn: string) => `
  INSERT INTO partner_messages (partner_id, kind, channel, id, claimed_until, sent_at)
  SELECT p, kind, channel, CASE WHEN ${isOwn} THEN '${own.reqId}'::uuid ELSE '${sibling.reqId}' END,
    now() - interval '1 s', CASE WHEN channel = 'mail' THEN now() END
  FROM unnest(ARRAY['${partnerId}', '${otherPartner}']::uuid[]) AS p,
    unnest(ARRAY['failing', 'recovered']) AS kind, unnest(ARRAY['webhook', 'mail']) AS channel`;
const informedOfOne = informed("kind = 'failing' AND channel = 'webhook'");
/** Without its own end of trouble, which a claim forgets. */
const untoldEnd = `${informedOfOne}; DELETE FROM partner_messages
  WHERE partner_id = '${partnerId}' AND kind = 'recovered' AND channel = 'webhook'`;

test.each<[string, string, () => Promise<unknown>]>([
  ["postpones a Reversal", "", () => reversals.postpone(reversal, 1_000, "91")],
  ["ends a Reversal", "", () => reversals.end(reversal, done)],
  ["resolves a Reversal", allParked, () => reversals.resolve(partnerId, follower)],
  ["retries a Reversal", allParked, () => reversals.retry(partnerId, follower, "PARKED")],
  ["repeats a Reversal", allParked, () => reversals.repeat(partnerId, follower)],
  ["queues a Reversal", "", () => reversals.queue(partnerId, original, sale)],
  ["postpones a settlement", "", () => settlements.postpone(due, 1_000)],
  [
    "moves a settlement to its next step",
    onlyOthersInFlight,
    () => settlements.advance(due, { ...due, step: "sending" }, 1_000),
  ],
  ["notes an upload", "", () => settlements.acknowledge(due, sale, 1_000)],
  ["reserves numbers of a terminal", "", () => settlements.reserveTraceNumbers(due, 3)],
  ["keeps a late answer", noLate, () => settlements.keepLate(partnerId, tid, late)],
  [
    "closes a batch by a late answer",
    `${noLate}; ${allParked}; UPDATE transactions SET state = 'ERROR' WHERE state = 'INIT' AND command <> 'SETTLEMENT'`,
    () => settlements.keepLate(partnerId, tid, late),
  ],
  ["resolves a late answer", "", () => settlements.resolveLate(partnerId, settlement)],
  ["ends a comparison", "", () => comparisons.end({ partnerId, id: report }, undefined)],
  ["postpones a report", "", () => waiting.postpone({ partnerId, id: report } as never, 1_000)],
  [
    "releases a report",
    "",
    () =>
      completions.release({
        ...{ partnerId, id: report, originalId: original, chainId: original as string as ChainId, batchId },
        ...{ facts: sampleFacts(), notification: sampleNotification(partnerId, report) },
      }),
  ],
  ["completes a command", "", () => complete(sale, { notification: sampleNotification(partnerId, sale) })],
  ["completes a part", "", () => complete(sale, { amountMinor: 50n })],
  ["completes and reverses", "", () => complete(sale, { reversal: { tid, requestedBy: null } })],
  ["frees an original", "", () => complete(follower, { original: { id: original, becomes: "free" } })],
  ["ends an original", "", () => complete(follower, { original: { id: original, becomes: "done" } })],
  ["closes a batch", noLate, () => endBatch("closed")],
  ["opens a batch again", "UPDATE settlements SET step = 'sending'", () => endBatch("open")],
  ["ends a batch that was settled before", "", () => endBatch("reported")],
  [
    "drops an old chain",
    `DELETE FROM pending; DELETE FROM parked; UPDATE reversals SET state = 'DONE';
     UPDATE terminals SET batch_id = gen_random_uuid();
     UPDATE transactions r SET state = 'ERROR', reversal_state = 'done', successor_id = NULL, successor_command = NULL,
       successor_state = NULL, created_at = now() + CASE WHEN ${othersRows} THEN interval '50 days' ELSE '0' END`,
    () => retention.run(),
  ],
  ["redirects a command", "", () => transactions.redirect(partnerId, sale, leaseId, "B")],
  [
    "begins a command",
    noLate,
    () => transactions.begin(sampleInit(partnerId, leaseId, { tid, mid: "M1", command: "VOID", originalId: original })),
  ],
  [
    "begins a command with the reqId of another partner's, or of a report",
    `UPDATE transactions SET req_id = '${own.reqId}'
     WHERE partner_id = '${otherPartner}' AND id = '${sale}' OR partner_id = '${partnerId}' AND id = '${report}'`,
    () => transactions.begin(sampleInit(partnerId, leaseId, { tid: "T3", reqId: own.reqId })),
  ],
  ["records an acceptance", "", () => record({ kind: "accepted" })],
  ["records an acceptance of a parked one", "", () => record({ kind: "accepted" }, parked)],
  ["records a failure", "", () => record({ kind: "retry", delayMs: 1_000 })],
  ["parks after an attempt", "", () => record({ kind: "parked" })],
  ["postpones a delivery", "", () => deliveries.postpone([{ ...delivery, delayMs: 1_000 }])],
  ["parks without an attempt", "", () => deliveries.park([delivery], "timeout")],
  ["redelivers a pending one", laterAndTripped, () => redeliver(pending)],
  ["redelivers a parked one", "DELETE FROM endpoints", () => redeliver(parked)],
  ["closes a circuit", "", () => endpoints.close(own.endpoint, partnerId)],
  ["notes a pull", "", () => writePull(pool, partnerId, "c")],
  ["claims a message", untoldEnd, () => messages.claim(partnerId, ...message, own.pending, 60)],
  [
    "forgets the end of trouble that a claim finds",
    informed("channel = 'webhook'"),
    () => messages.claim(partnerId, ...message, own.pending, 60),
  ],
  ["notes a sent message", informedOfOne, () => messages.sent(partnerId, ...message)],
  ["gives a message up", informedOfOne, () => messages.giveUp(partnerId, ...message)],
  ["notes what a message is about", informed("kind = 'failing'"), () => messages.found(partnerId, own.pending)],
  [
    "forgets messages",
    informed("channel = 'mail'"),
    () => messages.forget({ partnerId, channel: "mail", id: own.reqId }),
  ],
  ["notes the use of an API key", "", () => partners.apiKeyUsed(partnerId, own.key)],
  ["counts seals", "", () => partners.addSeals(partnerId, own.key, 5)],
  ["ends an API key", "", () => partners.endApiKey(partnerId, own.key, () => undefined)],
  ["removes a terminal", free, () => terminals.remove(partnerId, tid, 30)],
  ["gives a terminal to another partner", free, () => terminals.upsert(taker, terminal, 30)],
  ["rotates a key", "", () => partners.rotate(partnerId, newKey, 60, true)],
])("%s, and changes no row of others", async (_, prepare, change) => {
  await pool.query(prepare);
  const before = await rows();
  await change();
  const after = await rows();
  expect(after.others).toEqual(before.others);
  expect(after.own).not.toEqual(before.own);
});

const onlyOthersOpen = `UPDATE terminals r SET late_settlement = NULL WHERE ${othersRows}`;
const ended = `UPDATE reversals r SET state = CASE WHEN ${othersRows} THEN 'DONE' ELSE 'PARKED' END, response_code = '00'`;
const onlyOwn = (table: string) => `DELETE FROM ${table} WHERE partner_id = '${otherPartner}'`;
const queued = { ...delivery, chainId: original, follows: true, settlesBatch: batchId } as never;

test.each<[string, () => Promise<unknown>, string?]>([
  ["a queue", () => deliveries.scan({ partnerId, queue: tid, after: undefined, rowsMax: 9 })],
  ["no order", async () => (await deliveries.preceding([queued])).map((one) => [one?.after])],
  ["no open batch", async () => [await settlements.keepLate(partnerId, tid, late)], onlyOthersOpen],
  [
    "no end but its own",
    async () => {
      const others = [{ ...done, state: "PARKED" } as const, { ...done, responseCode: "12" }];
      const found = await Promise.all(others.map((other) => reversals.end(reversal, other)));
      return found.every((end) => end === undefined);
    },
    "UPDATE reversals SET state = 'DONE', response_code = '00'",
  ],
  ["no end of another Reversal", async () => [await reversals.end(reversal, done)], ended],
  ["a transaction", () => transactions.find(partnerId, original)],
  ["a transaction by its reqId", async () => (await transactions.findByReqId(partnerId, follower))?.id === follower],
  ["none by an unknown reqId", async () => (await transactions.findByReqId(partnerId, newId())) === undefined],
  [
    "a command that is sent again",
    async () => (await transactions.begin(sampleInit(partnerId, leaseId, { reqId: sale }))).outcome === "repeated",
  ],
  ["its reqId", () => readReqId(homes)(partnerId, sale)],
  ["a report", async () => [...(await transactions.findReported(partnerId, [`X-${report}`]))]],
  ["a chain", async () => transactions.chain((await transactions.find(partnerId, original)) as never)],
  ["its card", async () => [...(await postgresCards(homes).find(partnerId, [original as string as ChainId]))]],
  ["a settlement", () => settlements.find(partnerId, settlement)],
  ["a late answer", () => settlements.late(partnerId, tid, batchId)],
  ["totals", () => settlements.totals(partnerId, batchId)],
  ["entries", () => settlements.entries(partnerId, batchId, null, 10)],
  ["what is counted", () => settlements.counted(partnerId, batchId)],
  [
    "a comparison",
    async () => {
      const read: unknown[] = [];
      const into = { addTransaction: (one: unknown) => read.push(one), addEntry: (one: unknown) => read.push(one) };
      const found = await comparisons.read({ partnerId, id: report }, { ...into, isAfter: () => false } as never, 10);
      return [found, read];
    },
  ],
  [
    "a Reversal with its transaction",
    async () => (await money.find("reversals", follower))?.["reqId"] === follower,
    onlyOwn("reversals"),
  ],
  ["a settlement with its transaction", () => money.find("settlements", settlement), onlyOwn("settlements")],
  ["a settlement with its batch", () => money.settlement(settlement), onlyOwn("transactions")],
  ["a chain for the operator", () => money.chain(partnerId, original)],
  ["an acquirer", async () => (await terminals.acquirerOf(partnerId, tid)) === ""],
  ["a terminal", () => terminals.find(partnerId, tid)],
  ["a device", () => isRegisteredDevice(homes, partnerId, partnerId + tid)],
  ["no device of others", async () => !(await isRegisteredDevice(homes, partnerId, otherPartner + tid))],
  [
    "contents",
    async () => {
      const found = [...(await readContents(pool, partnerId, [pending, parked]))];
      return found.every(([, { attemptsMade }]) => attemptsMade === 1) && found;
    },
  ],
  [
    "states",
    async () => {
      const found = await readStatuses(
        pool,
        [pending, parked, accepted].map((id) => ({ partnerId, id })),
      );
      return found.map(({ state }) => state).join() === "pending,parked,accepted" && found;
    },
  ],
  ["attempts", () => readAttempts(pool, { partnerId, id: pending }, 10)],
])("finds %s, whatever others have", async (_, find, prepare = "") => {
  await pool.query(prepare);
  const found = await find();
  await pool.query(tables.map((table) => `DELETE FROM ${table} r WHERE ${othersRows}`).join("; "));
  expect(found).toEqual(await find());
  expect(found).toBeTruthy();
});
