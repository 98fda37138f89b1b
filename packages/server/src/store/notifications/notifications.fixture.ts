import { createSecretKey, randomUUID } from "node:crypto";
import type { Pool, PoolClient } from "pg";
import { connectionsTo } from "../../../../../test/support/connections.ts";
import { createDatabase } from "../../../../../test/support/database.ts";
import { ContentMac } from "../../delivery/attempt/content-mac.ts";
import { lowestId, type NotificationId, newId, type PartnerId, type TransactionId } from "../../ids.ts";
import { LongPolls } from "../../notifications/long-polls.ts";
import { Notifications } from "../../notifications/notifications.ts";
import { ProofSigner } from "../../notifications/proof.ts";
import { sealing } from "../../notifications/pull.ts";
import type { NotificationStore } from "../../notifications/store.ts";
import { partnerSnapshot } from "../../partners/partner.fixture.ts";
import type { Partner, PartnerSettings } from "../../partners/partner.ts";
import { Homes } from "../database/homes.ts";
import { sampleFacts } from "../rows.fixture.ts";
import { Partitions } from "../schema/partitions.ts";
import { readReqId } from "../transactions/transactions.ts";
import { postgresNotifications } from "./notifications.ts";

/** A database with its days of history, and the notifications as the APIs use them. */
export interface NotificationBench {
  readonly pool: Pool;
  readonly engine: Pool;
  /** The connections that the store uses. */
  readonly homes: Homes;
  readonly store: NotificationStore;
  readonly arrivals: LongPolls;
  readonly notifications: Notifications;
  readonly partitions: Partitions;
  readonly contents: ContentMac;
  /** Notifications that were found not to be as they were committed. */
  readonly changed: NotificationId[];
  /** Partners for which something was reported as due. */
  readonly told: PartnerId[];
  close(): Promise<void>;
}

/** @param watch wraps the pool that the store uses */
export async function openBench(watch: (pool: Pool) => Pool = (pool) => pool): Promise<NotificationBench> {
  const database = await createDatabase();
  const connections = connectionsTo(database.url, 16);
  const { pool, engine } = connections;
  const clock = { nowMs: () => Date.now() };
  const changed: NotificationId[] = [];
  const contents = new ContentMac(createSecretKey(Buffer.alloc(32, 2)), ({ id }) => void changed.push(id));
  const partitions = new Partitions({ homes: connections.homes, clock, historyDays: 90, proofDays: 400, contents });
  await partitions.maintain();
  const homes = new Homes(connections.homes.all.map((home) => ({ ...home, pool: watch(home.pool) })));
  const store = postgresNotifications({ pool: watch(pool), homes }, partitions);
  const told: PartnerId[] = [];
  const arrivals = new LongPolls({ store, waitingMax: 100 });
  const notifications = new Notifications({
    store,
    arrivals,
    seal: sealing({ spend: () => undefined }, contents, clock, readReqId(homes)),
    contents,
    proofs: new ProofSigner(createSecretKey(Buffer.alloc(32, 1))),
    clock,
    findPartner: async (id) => {
      const { rows } = await pool.query<{ settings: PartnerSettings }>("SELECT settings FROM partners WHERE id = $1", [
        id,
      ]);
      return rows[0] && { ...partnerSnapshot(rows[0].settings), id };
    },
    newReqId: randomUUID,
    onDue: (partnerId) => void told.push(partnerId),
  });
  const close = async () => {
    await connections.close();
    await database.drop();
  };
  return { pool, engine, homes, store, arrivals, notifications, partitions, contents, changed, told, close };
}

export async function registerPartner(pool: Pool, settings: Partial<PartnerSettings> = {}): Promise<Partner> {
  const partner = { ...partnerSnapshot(settings), id: newId<"partner">() };
  await pool.query("INSERT INTO partners (id, state, settings) VALUES ($1, 'active', $2)", [
    partner.id,
    partner.settings,
  ]);
  return partner;
}

export interface NotificationInput {
  readonly id?: NotificationId;
  readonly transactionId?: TransactionId;
  readonly command?: string;
  readonly callBackUrl?: string;
  readonly content?: string;
  readonly state?: "pending" | "parked" | "accepted";
  readonly reason?: string;
  readonly round?: number;
}

/** Inserts a notification as the other parts of the store do. */
export async function insertNotification(
  database: Pool | PoolClient,
  partnerId: PartnerId,
  given: NotificationInput = {},
): Promise<NotificationId> {
  const id = given.id ?? newId<"notification">();
  const content = given.content ?? JSON.stringify(sampleFacts({ id }));
  await database.query(
    `INSERT INTO notifications (partner_id, id, transaction_id, chain_id, command, callback_url, content)
     VALUES ($1, $2, $3, $2, $4, $5, $6)`,
    [partnerId, id, given.transactionId ?? null, given.command ?? "SALE", given.callBackUrl ?? null, content],
  );
  const round = given.round ?? 0;
  if (given.state === "pending") {
    await database.query(
      "INSERT INTO pending (partner_id, id, chain_id, due_at, round, bytes) VALUES ($1, $2, $2, now(), $3, 100)",
      [partnerId, id, round],
    );
  }
  if (given.state === "parked") {
    await database.query(
      `INSERT INTO parked (partner_id, id, chain_id, round, attempts_made, bytes, reason)
       VALUES ($1, $2, $2, $3, 2, 100, $4)`,
      [partnerId, id, round, given.reason ?? "timeout"],
    );
  }
  return id;
}

export async function insertAttempt(
  pool: Pool,
  partnerId: PartnerId,
  id: NotificationId,
  given: { attemptNo: number; round?: number; reason?: string; answer?: Buffer },
): Promise<void> {
  await pool.query(
    `INSERT INTO attempts (partner_id, id, round, attempt_no, lease_id, started_at, duration_ms, url, address,
       http_status, reason, answer)
     VALUES ($1, $2, $3, $4, $5, '2026-11-21T10:00:00Z', 250, 'https://partner.example/ipn', '192.0.2.1', $6, $7, $8)`,
    [
      partnerId,
      id,
      given.round ?? 0,
      given.attemptNo,
      newId<"lease">(),
      given.reason ? 503 : 200,
      given.reason ?? null,
      given.answer ?? null,
    ],
  );
}

/** An id of that moment. */
export function idAt(atMs: number): NotificationId {
  return (lowestId(atMs).slice(0, 14) + newId().slice(14)) as NotificationId;
}
