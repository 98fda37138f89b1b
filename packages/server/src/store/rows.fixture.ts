import { createHash } from "node:crypto";
import type { Pool } from "pg";
import { type ChainId, type LeaseId, lowestId, newId, type PartnerId, type TransactionId } from "../ids.ts";
import type { CardFacts } from "../ipn/facts.ts";
import type { NewNotification } from "../ledger/notifier.ts";
import type { Init, ReportedCompletion } from "../ledger/store.ts";

const dayMs = 86_400_000;

/** Creates one partition for yesterday, today and tomorrow. */
export async function createHistory(pool: Pool): Promise<void> {
  const today = Math.floor(Date.now() / dayMs) * dayMs;
  for (const table of ["notifications", "attempts"]) {
    await pool.query(
      `CREATE TABLE ${table}_now PARTITION OF ${table}
       FOR VALUES FROM ('${lowestId(today - dayMs)}') TO ('${lowestId(today + 2 * dayMs)}')`,
    );
  }
}

/** Inserts a partner's row without settings: enough for rows that refer to it. */
export async function insertPartner(pool: Pool): Promise<PartnerId> {
  const id = newId<"partner">();
  await pool.query("INSERT INTO partners (id, state, settings) VALUES ($1, 'active', '{}')", [id]);
  return id;
}

/** Inserts the lease of a process that runs commands. A dead process has no row. */
export async function insertLease(pool: Pool): Promise<LeaseId> {
  const id = newId<"lease">();
  await pool.query("INSERT INTO leases (id, kind, host, version) VALUES ($1, 'api', 'test', '0')", [id]);
  return id;
}

export function sampleFacts(fields: Readonly<Record<string, string>> = {}): CardFacts {
  return { kind: "card", command: "SALE", fields: { amount: "150000", currency: "VND", status: "SUCCESS", ...fields } };
}

export function sampleInit(partnerId: PartnerId, leaseId: LeaseId, change: Partial<Init> = {}): Init {
  const id = newId<"transaction">();
  const reqId = change.reqId ?? newId();
  return {
    partnerId,
    id,
    leaseId,
    command: "SALE",
    reqId,
    bodyHash: createHash("sha256").update(reqId).digest(),
    originalId: null,
    chainId: id as string as ChainId,
    tid: "T0000001",
    mid: "M00000000000001",
    callBackUrl: null,
    openTerminals: true,
    sharesTerminals: true,
    claimsMax: 10_000,
    takes: { traceNo: true, invoiceNo: true, batch: true, settlement: null },
    refusal: () => undefined,
    amountMinor: 150_000n,
    currency: "VND",
    acquirer: "",
    site: null,
    sealedCard: null,
    facts: (terminal) =>
      sampleFacts({ traceNo: terminal.traceNo, invoiceNo: terminal.invoiceNo, batchNo: terminal.batchNo }),
    ...change,
  };
}

export function sampleNotification(partnerId: PartnerId, transactionId: TransactionId): NewNotification {
  const facts = sampleFacts();
  return {
    partnerId,
    id: newId<"notification">(),
    transactionId,
    originalId: null,
    originalExternalId: null,
    chainId: transactionId as string as ChainId,
    command: "SALE",
    callBackUrl: null,
    queue: "",
    follows: false,
    settlesBatch: null,
    facts,
    content: JSON.stringify(facts),
  };
}

export function sampleReport(partnerId: PartnerId, change: Partial<ReportedCompletion> = {}): ReportedCompletion {
  const id = change.id ?? newId<"transaction">();
  return {
    partnerId,
    id,
    externalId: `X-${id}`,
    originalExternalId: null,
    originalId: null,
    chainId: id as string as ChainId,
    callBackUrl: null,
    command: "SALE",
    state: "SUCCESS",
    reqId: null,
    batchId: null,
    facts: sampleFacts(),
    notification: sampleNotification(partnerId, id),
    ...change,
  };
}
