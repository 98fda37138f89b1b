import { hostname } from "node:os";
import type { Client, QueryConfig, QueryResult } from "pg";
import type { Instance, InstanceStore } from "../instance.ts";

const join = {
  name: "join_instance",
  text: `
    INSERT INTO instances AS i (id, epoch, expires_at, host) VALUES ($1, $2, now() + $3 * interval '1 millisecond', $4)
    ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, expires_at = excluded.expires_at`,
};

const renew = {
  name: "renew_instance",
  text: `
    UPDATE instances SET expires_at = now() + $3 * interval '1 millisecond'
    WHERE id = $1 AND epoch = $2 AND expires_at > now()`,
};

// Long dead, and without rows of its own by now: releases run every second.
const forget = "DELETE FROM instances WHERE expires_at < now() - interval '1 hour'";

const leave = { name: "leave_instance", text: "DELETE FROM instances WHERE id = $1" };

/** Leases in PostgreSQL, over a connection of their own: a renewal never queues behind other work. */
export class PostgresInstances implements InstanceStore {
  readonly #connection: () => Promise<Client>;

  constructor(connection: () => Promise<Client>) {
    this.#connection = connection;
  }

  async join(instance: Instance, leaseMs: number): Promise<void> {
    await this.#ask({ text: forget });
    await this.#ask({ ...join, values: [instance.id, instance.epoch, leaseMs, hostname()] });
  }

  async renew(instance: Instance, leaseMs: number): Promise<boolean> {
    const { rowCount } = await this.#ask({ ...renew, values: [instance.id, instance.epoch, leaseMs] });
    return rowCount === 1;
  }

  async leave(instance: Instance): Promise<void> {
    await this.#ask({ ...leave, values: [instance.id] });
  }

  async #ask(query: QueryConfig): Promise<QueryResult> {
    const client = await this.#connection();
    try {
      return await client.query(query);
    } catch (error) {
      // What gave no answer may never give one, and would hold up all that comes after: the next goes over another.
      client.end().catch(() => undefined);
      throw error;
    }
  }
}
