import { afterAll, beforeAll, beforeEach } from "vitest";
import { connectionsTo } from "../../../../../test/support/connections.ts";
import { createDatabase, type TestDatabase } from "../../../../../test/support/database.ts";
import type { Delivery } from "../../delivery/delivery.ts";
import type { QueuePage, QueueRead } from "../../delivery/store.ts";
import type { PartnerId } from "../../ids.ts";
import type { ReportedCompletion } from "../../ledger/store.ts";
import type { Database } from "../database/database.ts";
import { createHistory, insertPartner, sampleNotification, sampleReport } from "../rows.fixture.ts";
import { PostgresCompletions } from "../transactions/completions.ts";
import { PostgresDeliveries } from "./deliveries.ts";

export interface DeliveriesContext {
  readonly connections: Database;
  readonly completions: PostgresCompletions;
  readonly deliveries: PostgresDeliveries;
  /** The partner of the current test. */
  readonly partnerId: PartnerId;
  /** Inserts one row per report, due now, in order. */
  report(count: number, change?: Partial<ReportedCompletion> & { readonly callBackUrl?: string | null }): Promise<void>;
  read(read?: Partial<QueueRead>): Promise<QueuePage>;
  /** The delivery that is due first. */
  first(read?: Partial<QueueRead>): Promise<Delivery>;
  /** Rows of `pending`, in the order of their ids. */
  pending(): Promise<readonly Record<string, unknown>[]>;
  query(text: string, values?: unknown[]): Promise<readonly Record<string, unknown>[]>;
}

/** Opens a database for the tests of one file, with a new partner for each test. */
export function useDeliveries(): DeliveriesContext {
  let database: TestDatabase;
  const context = {} as { -readonly [Key in keyof DeliveriesContext]: DeliveriesContext[Key] };

  beforeAll(async () => {
    database = await createDatabase();
    const connections = connectionsTo(database.url, 12);
    await createHistory(connections.pool);
    context.connections = connections;
    context.completions = new PostgresCompletions(connections.homes);
    context.deliveries = new PostgresDeliveries(connections.homes);
  });
  beforeEach(async () => {
    await context.query("TRUNCATE pending, parked, attempts, events, endpoints");
    context.partnerId = await insertPartner(context.connections.pool);
  });
  afterAll(async () => {
    await context.connections.close();
    await database.drop();
  });

  context.query = async (text, values = []) => (await context.connections.pool.query(text, values)).rows;
  context.report = async (count, change = {}) => {
    for (let nth = 0; nth < count; nth += 1) {
      const { id, ...rest } = sampleReport(change.partnerId ?? context.partnerId);
      const callBackUrl = change.callBackUrl ?? null;
      const queue = callBackUrl === null ? "" : new URL(callBackUrl).origin;
      const notification = { ...sampleNotification(rest.partnerId, id), callBackUrl, queue };
      await context.completions.report({ ...rest, id, notification, ...change });
    }
  };
  context.read = async (read = {}) => {
    const { partnerId } = context;
    const all = { partnerId, queue: "", after: undefined, rowsMax: 100, bytesMax: 1e9, ...read };
    const [page] = await context.deliveries.read([all]);
    if (page === undefined) throw new Error("no page came");
    return page;
  };
  context.first = async (read) => {
    const { due } = await context.read(read);
    if (due[0]?.delivery === undefined) throw new Error("nothing was due");
    return due[0].delivery;
  };
  context.pending = () =>
    context.query("SELECT id, queue, round, attempts_made, due_at > now() AS later FROM pending ORDER BY id");
  return context;
}
