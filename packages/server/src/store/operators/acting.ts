import { AsyncLocalStorage } from "node:async_hooks";
import type { Pool, PoolClient } from "pg";
import type { AuditRecord } from "../../operators/audit.ts";

/** An action that is running, whose transactions append its audit entry. */
interface Acting {
  /** @param subject of an object that the action makes */
  append(client: PoolClient, pool: Pool, subject: string): Promise<AuditRecord>;
}

const acting = new AsyncLocalStorage<Acting>();
const composing = new AsyncLocalStorage<{ readonly pool: Pool; readonly client: PoolClient }>();

/** Every transaction that changes something for this action has to call {@link appendEntry}. */
export function runActing<Result>(action: Acting, run: () => Result): Result {
  return acting.run(action, run);
}

/**
 * Appends the entry of the running action, as the last thing before COMMIT: the change and its entry are stored
 * together, or neither is. Does nothing if no action is running.
 */
export async function appendEntry(client: PoolClient, pool: Pool, subject = ""): Promise<AuditRecord | undefined> {
  return await acting.getStore()?.append(client, pool, subject);
}

/** Reads in `compose` through {@link seen} see what this transaction has changed. */
export function composeWithin<Result>(pool: Pool, client: PoolClient, compose: () => Result): Result {
  return composing.run({ pool, client }, compose);
}

export function seen(pool: Pool): Pool | PoolClient {
  const within = composing.getStore();
  return within?.pool === pool ? within.client : pool;
}
