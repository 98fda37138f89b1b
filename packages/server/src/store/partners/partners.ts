import type { Pool, PoolClient } from "pg";
import { ServiceError } from "../../errors.ts";
import type { KeyId, PartnerId } from "../../ids.ts";
import { registeredRoutes } from "../../notification.ts";
import type { ReSealStore, SealedKey } from "../../partners/master-key.ts";
import type { KeyKind, PartnerSettings } from "../../partners/partner.ts";
import type {
  LoadedKey,
  LoadedPartner,
  NewKey,
  PartnerStore,
  Rotation,
  StoredKey,
  StoredPartner,
} from "../../partners/store.ts";
import type { Database } from "../database/database.ts";
import type { Homes } from "../database/homes.ts";
import { planned, prepared } from "../database/statement.ts";
import { despiteConflicts, failureKindOf } from "../database/transaction.ts";
import { appendEntry, seen } from "../operators/audit.ts";
import { type RowSeal, type RowSeals, sealOf } from "../operators/row-seals.ts";

// A partner's changes are detected by its xmin, and expiry by the list of valid versions. Counting seals changes
// neither.
const standingOf = (k: string) => `${k}.active_from <= now() AND (${k}.expires_at IS NULL OR ${k}.expires_at > now())`;
const standing = standingOf("k");
const fingerprint = `
  p.xmin::text || coalesce((
    SELECT string_agg(k.id::text, ',' ORDER BY k.id)
    FROM partner_keys k WHERE k.partner_id = p.id AND ${standing}), '')`;

const fingerprints = prepared<{ id: PartnerId; fingerprint: string }>(
  `SELECT p.id, ${fingerprint} AS fingerprint FROM partners p WHERE p.id = ANY ($1::uuid[])`,
);

const load = prepared<Omit<LoadedPartner, "keys"> & { keys: SealedKeyRow[] }>(`
  SELECT p.id, p.state, p.settings, ${fingerprint} AS fingerprint, coalesce((
    SELECT json_agg(json_build_array(extract(epoch FROM lower(r)) * 1000, extract(epoch FROM upper(r)) * 1000)
      ORDER BY r)
    FROM unnest(p.pauses) AS r), '[]') AS pauses, coalesce((
    SELECT json_agg(json_build_object('id', t.id, 'kind', t.kind, 'scopes', t.scopes,
      'material', encode(t.material, 'base64'),
      'seal', CASE WHEN t.kind = 'apiKey' THEN ${sealOf("partner_keys")} END)
      ORDER BY t.active_from DESC, t.id DESC)
    FROM partner_keys t WHERE t.partner_id = p.id AND ${standingOf("t")}), '[]') AS keys
  FROM partners p WHERE p.id = ANY ($1::uuid[])`);

const partnersByApiKey = prepared<{ hash: string; partner_id: PartnerId }>(`
    SELECT encode(material, 'hex') AS hash, partner_id FROM partner_keys
    WHERE kind = 'apiKey' AND material = ANY ($1::bytea[])`);

const addSeals = prepared<{ seals: string | number }>(
  "UPDATE partner_keys SET seals = seals + $3 WHERE partner_id = $1 AND id = $2 RETURNING seals",
);

/** Longer than any useful schedule; older pauses are deleted when a partner becomes active again. */
const pausesKeptDays = 400;

const insertKeys = planned(`
  INSERT INTO partner_keys (partner_id, id, kind, material)
  SELECT $1, * FROM unnest($2::uuid[], $3::text[], $4::bytea[])`);

const shown = `
  p.id, p.state, p.settings, p.created_at AS "createdAt", p.updated_at AS "updatedAt", (
    SELECT json_agg(json_build_object('id', k.id, 'kind', k.kind, 'seals', k.seals, 'activeFrom', k.active_from,
      'expiresAt', k.expires_at, 'createdAt', k.created_at, 'name', k.name, 'scopes', k.scopes,
      'lastUsedAt', k.last_used_at) ORDER BY k.id)
    FROM partner_keys k WHERE k.partner_id = p.id) AS keys`;

/** Times are texts in JSON. */
type InJson<Value> = {
  readonly [Name in keyof Value]: Date extends Value[Name] ? Exclude<Value[Name], Date> | string : Value[Name];
};
type PartnerRow = Omit<StoredPartner, "keys"> & { readonly keys: readonly InJson<StoredKey>[] | null };

type SealedKeyRow = Omit<LoadedKey, "material"> & { material: string; seal: RowSeal | null };

/**
 * Partners and their key versions in PostgreSQL. Reads for reports and POSTs use the engine's connections: measured,
 * five searches of 30 s occupied all connections for people, and nothing was sent for 25 s.
 *
 * @param seals absent: API keys are stored without a MAC
 */
export function postgresPartners({ engine, pool }: Pick<Database, "engine" | "pool">, seals?: RowSeals): PartnerStore {
  function toStore(key: NewKey): NewKey {
    const { kind, material } = key;
    return kind === "apiKey" ? { ...key, material: seals?.toStore(material) ?? material } : key;
  }

  /**
   * The partner's main API keys that a rotation ends, also that of one which began later and was first: it is active
   * only from then on. One that is not intact stays so: sealing it would accept it.
   */
  async function intactOf(client: PoolClient, partnerId: PartnerId): Promise<readonly KeyId[]> {
    const { rows } = await client.query<{ id: KeyId; seal: RowSeal }>(
      `SELECT t.id, ${sealOf("partner_keys")} AS seal FROM partner_keys t
       WHERE t.partner_id = $1 AND t.kind = 'apiKey' AND t.name = '' AND (t.expires_at IS NULL OR t.expires_at > now())`,
      [partnerId],
    );
    return rows.filter(({ id, seal }) => seals?.isIntact("partner_keys", id, seal) ?? true).map(({ id }) => id);
  }

  /**
   * Every instance caches partners for some seconds; the notification shortens that. On Citus each change of keys waits
   * for every other, and may wait too long for its lock: it is repeated.
   */
  function changing<Result>(id: PartnerId, work: ChangeWork<Result>, made: string = id): Promise<Result> {
    return despiteConflicts(() => changeOnce(id, work, made));
  }

  async function changeOnce<Result>(id: PartnerId, work: ChangeWork<Result>, subject: string): Promise<Result> {
    const client = await pool.connect();
    try {
      await client.query("BEGIN");
      const ids: KeyId[] = [];
      const result = await work(client, ids);
      await client.query("SELECT pg_notify('paybell_partner', $1)", [id]);
      const seal = { table: "partner_keys", ids, partnerId: id, action: "changeApiKeys", subject } as const;
      if (ids.length > 0 && seals !== undefined) await seals.seal(client, seal);
      else if (!isRefusal(result)) await appendEntry(client, pool, subject);
      await client.query("COMMIT").catch(refuseToGuess);
      client.release();
      return result;
    } catch (error) {
      // A connection whose ROLLBACK fails as well is not used again.
      await client.query("ROLLBACK").then(
        () => client.release(),
        (rollbackError: Error) => client.release(rollbackError),
      );
      throw error;
    }
  }

  const store: PartnerStore = {
    insert: (partner) =>
      changing(partner.id, async (client, changed) => {
        await client.query(
          `INSERT INTO partners (id, state, settings, registered_origin, registered_routes)
         VALUES ($1, 'active', $2, $3, $4)`,
          [partner.id, partner.settings, originOf(partner.settings), registeredRoutes(partner.settings)],
        );
        const keys = partner.keys.map((key) => toStore(key));
        await insertKeys.run(client, [partner.id, ...keyColumns(keys)]);
        changed.push(...keys.filter(({ kind }) => kind === "apiKey").map(({ id }) => id));
        return await findOne(client, partner.id);
      }),

    change: (id, next) =>
      changing(id, async (client) => {
        const [row] = await findRows(client, id, "FOR UPDATE");
        if (row === undefined) return undefined;
        const { state = row.state, settings = row.settings } = next(row);
        const { now, keptFrom } = await clockOf(client);
        await client.query(
          `UPDATE partners SET state = $2, settings = $3, registered_origin = $4, registered_routes = $7, updated_at = $6,
           stopped_at = CASE WHEN $2 <> 'active' THEN coalesce(stopped_at, $6) END,
           pauses = CASE WHEN $2 = 'active' AND stopped_at IS NOT NULL
             THEN (pauses + tstzmultirange(tstzrange(stopped_at, $6)))
               * tstzmultirange(tstzrange($5, NULL))
             ELSE pauses END
         WHERE id = $1`,
          [id, state, settings, originOf(settings), keptFrom, now, registeredRoutes(settings)],
        );
        return await findOne(client, id);
      }),

    async find(id) {
      const [row] = await findRows(seen(pool), id, "");
      return row;
    },

    async list(after, limit) {
      const { rows } = await pool.query<PartnerRow>(
        `SELECT ${shown} FROM partners p WHERE $1::uuid IS NULL OR p.id > $1 ORDER BY p.id LIMIT $2`,
        [after ?? null, limit],
      );
      return rows.map(readPartner);
    },

    rotate: (id, key, overlapS, activeAtOnce) =>
      changing(id, async (client, changed) => {
        if ((await touch(client, id)) === undefined) return undefined;
        if (key.kind === "apiKey") changed.push(...(await intactOf(client, id)), key.id);
        const { rows } = await client.query<Rotation>(
          `SELECT now() + $1 * interval '1 second' AS "activeFrom", now() + $2 * interval '1 second' AS "expiresOld"`,
          [activeAtOnce ? 0 : overlapS, overlapS],
        );
        const [rotation] = rows;
        await client.query(
          `UPDATE partner_keys SET expires_at = least(expires_at, $3)
         WHERE partner_id = $1 AND kind = $2 AND name = ''`,
          [id, key.kind, rotation?.expiresOld],
        );
        await client.query(
          "INSERT INTO partner_keys (partner_id, id, kind, material, active_from) VALUES ($1, $2, $3, $4, $5)",
          [id, key.id, key.kind, toStore(key).material, rotation?.activeFrom],
        );
        return rotation;
      }),

    replaceCallbackKey: (id, key) =>
      changing(id, async (client) => {
        const endedAt = await touch(client, id);
        if (endedAt === undefined) return undefined;
        await client.query(
          "UPDATE partner_keys SET expires_at = least(expires_at, $2) WHERE partner_id = $1 AND kind = 'callbackKey'",
          [id, endedAt],
        );
        if (key !== null) {
          await client.query(
            `INSERT INTO partner_keys (partner_id, id, kind, material, expires_at)
           VALUES ($1, $2, 'callbackKey', $3, $4)`,
            [id, key.id, key.material, key.endsAt],
          );
        }
        return await findOne(client, id);
      }),

    addApiKey: (partnerId, { id, material, name, scopes, expiresInS, maker }, keysMax) =>
      changing(
        partnerId,
        async (client, changed) => {
          // The row lock serializes two concurrent calls. A key of a call that began later may be there: it
          // counts, although it is active only from then on.
          if ((await touch(client, partnerId)) === undefined) return "no such partner";
          const { rows } = await client.query<{ keys: number; expiresAt: string | null }>(
            `SELECT count(*)::integer AS keys, least(now() + $2 * interval '1 second', (
           SELECT m.expires_at FROM partner_keys m WHERE m.partner_id = $1 AND m.id = $3))::text AS "expiresAt"
         FROM partner_keys k
         WHERE k.partner_id = $1 AND k.kind = 'apiKey' AND (k.expires_at IS NULL OR k.expires_at > now())`,
            [partnerId, expiresInS, maker],
          );
          const [{ keys, expiresAt } = { keys: keysMax, expiresAt: null }] = rows;
          if (keys >= keysMax) return "too many";
          await client.query(
            `INSERT INTO partner_keys (partner_id, id, kind, material, name, scopes, expires_at)
         VALUES ($1, $2, 'apiKey', $3, $4, $5, $6)`,
            [partnerId, id, toStore({ id, kind: "apiKey", material }).material, name, scopes, expiresAt],
          );
          changed.push(id);
          return "added";
        },
        id,
      ),

    endApiKey: (partnerId, keyId, judge) =>
      changing(partnerId, async (client, changed) => {
        // Two keys that revoke each other wait for the row lock: the second one finds the first ended.
        const now = await touch(client, partnerId);
        if (now === undefined) return false;
        const keys = (await findOne(client, partnerId)).keys.filter(({ kind }) => kind === "apiKey");
        const key = keys.find(({ id }) => id === keyId);
        if (key === undefined) return false;
        const valid = keys.filter(({ expiresAt }) => expiresAt === null || expiresAt > new Date(now));
        if (valid.includes(key)) {
          judge(
            key,
            valid.filter(({ id }) => id !== keyId),
          );
        }
        await client.query(
          "UPDATE partner_keys SET expires_at = least(expires_at, $3) WHERE partner_id = $1 AND id = $2",
          [partnerId, keyId, now],
        );
        changed.push(keyId);
        return true;
      }),

    async apiKeyUsed(partnerId, keyId) {
      await pool.query("UPDATE partner_keys SET last_used_at = now() WHERE partner_id = $1 AND id = $2", [
        partnerId,
        keyId,
      ]);
    },

    async fingerprints(ids) {
      const rows = await fingerprints.rows(engine, [ids]);
      return new Map(rows.map((row) => [row.id, row.fingerprint]));
    },

    async load(ids) {
      const isIntact = ({ id, seal }: SealedKeyRow) =>
        seal === null || (seals?.isIntact("partner_keys", id, seal) ?? true);
      const rows = await load.rows(engine, [ids]);
      return rows.map((row) => ({
        ...row,
        keys: row.keys
          .filter(isIntact)
          .map(({ seal: _, ...key }) => ({ ...key, material: Buffer.from(key.material, "base64") })),
      }));
    },

    async partnersByApiKey(hashes) {
      const plainOf = new Map(
        hashes.flatMap((hash) =>
          (seals?.storedAs(hash) ?? [hash]).map((stored) => [stored.toString("hex"), hash] as const),
        ),
      );
      const stored = [...plainOf.keys()].map((hex) => Buffer.from(hex, "hex"));
      const rows = await partnersByApiKey.rows(engine, [stored]);
      return new Map(rows.map((row) => [plainOf.get(row.hash)?.toString("hex") ?? row.hash, row.partner_id]));
    },

    async addSeals(partnerId, keyId, count) {
      const row = await despiteConflicts(() => addSeals.first(engine, [partnerId, keyId, count]));
      return row && Number(row.seals);
    },

    async storeSealed(name, sealed) {
      await pool.query("INSERT INTO sealed_values (name, sealed) VALUES ($1, $2) ON CONFLICT DO NOTHING", [
        name,
        sealed,
      ]);
      return (await store.sealedValue(name)) ?? sealed;
    },

    async sealedValue(name) {
      const { rows } = await pool.query<{ sealed: Buffer }>("SELECT sealed FROM sealed_values WHERE name = $1", [name]);
      return rows[0]?.sealed;
    },
  };
  return store;
}

/** Certificates of partners that end, in PostgreSQL. */
export function postgresCertificates(homes: Homes) {
  return {
    /** Client certificates that end within this many days, without an event in the last day. */
    async endingCertificates(withinDays: number) {
      const rows = await homes.gather(async (home) => {
        const ending = await home.pool.query<{ partner_id: PartnerId; id: KeyId; expires_at: Date }>(
          `SELECT k.partner_id, k.id, k.expires_at FROM partner_keys k
           WHERE k.kind = 'callbackKey' AND k.expires_at > now() AND k.expires_at < now() + $1 * interval '1 day'
             AND NOT EXISTS (
               SELECT FROM events e
               WHERE e.partner_id = k.partner_id AND e.subject_id = k.id AND e.kind = 'certificate_ending'
                 AND e.created_at > now() - interval '1 day')`,
          [withinDays],
        );
        // Each home has the keys of all partners, but only its own events.
        return ending.rows.filter((row) => homes.of(row.partner_id) === home);
      });
      return rows.map((row) => ({ partnerId: row.partner_id, keyId: row.id, endsAt: row.expires_at }));
    },

    /** The partners' own CAs, in PEM, without an event in the last day that one of them ends. */
    async callbackCas() {
      const rows = await homes.gather(async (home) => {
        const found = await home.pool.query<{ id: PartnerId; pem: string }>(
          `SELECT p.id, p.settings->>'callbackCa' AS pem FROM partners p
           WHERE p.settings->>'callbackCa' IS NOT NULL AND NOT EXISTS (
             SELECT FROM events e
             WHERE e.partner_id = p.id AND e.kind = 'certificate_ending' AND e.detail->>'certificate' = 'callbackCa'
               AND e.created_at > now() - interval '1 day')`,
        );
        return found.rows.filter(({ id }) => homes.of(id) === home);
      });
      return rows.map(({ id, pem }) => ({ partnerId: id, pem }));
    },
  };
}

/** @param changed gets the ids of API keys that it changes */
type ChangeWork<Result> = (client: PoolClient, changed: KeyId[]) => Promise<Result>;

function isRefusal(result: unknown): boolean {
  return result === undefined || result === false || result === "too many" || result === "no such partner";
}

/** Without an answer to COMMIT the change may have been made. A repetition would make another key. */
function refuseToGuess(cause: unknown): never {
  if (failureKindOf(cause) !== "connection") throw cause;
  const message =
    "The database was lost before it confirmed the change, which may have been made. Look before you repeat it.";
  throw new ServiceError("internal", message, { cause });
}

async function findRows(client: Pool | PoolClient, id: PartnerId, lock: "" | "FOR UPDATE"): Promise<StoredPartner[]> {
  const { rows } = await client.query<PartnerRow>(`SELECT ${shown} FROM partners p WHERE p.id = $1 ${lock}`, [id]);
  return rows.map(readPartner);
}

async function findOne(client: PoolClient, id: PartnerId): Promise<StoredPartner> {
  const [row] = await findRows(client, id, "");
  if (row === undefined) throw new Error(`The partner ${id} went away inside of the transaction that holds it.`);
  return row;
}

/** Locks the partner and marks it as changed. @returns the time; undefined if there is no such partner */
async function touch(client: PoolClient, id: PartnerId): Promise<string | undefined> {
  const { rowCount } = await client.query("SELECT FROM partners WHERE id = $1 FOR UPDATE", [id]);
  if (rowCount === 0) return undefined;
  const { now } = await clockOf(client);
  await client.query("UPDATE partners SET updated_at = $2 WHERE id = $1", [id, now]);
  return now;
}

/** The time after the locks were acquired. A string, because a Date would truncate the microseconds. */
async function clockOf(client: PoolClient): Promise<{ readonly now: string; readonly keptFrom: string }> {
  const { rows } = await client.query<{ now: string; keptFrom: string }>(
    `SELECT t.now::text, (t.now - $1 * interval '1 day')::text AS "keptFrom" FROM clock_timestamp() AS t (now)`,
    [pausesKeptDays],
  );
  const [row] = rows;
  if (row === undefined) throw new Error("The database did not tell the time.");
  return row;
}

function readPartner({ keys, ...partner }: PartnerRow): StoredPartner {
  const date = (text: string | null) => (text === null ? null : new Date(text));
  const read = ({ activeFrom, expiresAt, createdAt, lastUsedAt, ...key }: InJson<StoredKey>): StoredKey => ({
    ...key,
    ...{ activeFrom: new Date(activeFrom), createdAt: new Date(createdAt) },
    ...{ expiresAt: date(expiresAt), lastUsedAt: date(lastUsedAt) },
  });
  return { ...partner, keys: (keys ?? []).map(read) };
}

function keyColumns(keys: readonly NewKey[]): [KeyId[], KeyKind[], Buffer[]] {
  return [keys.map((key) => key.id), keys.map((key) => key.kind), keys.map((key) => key.material)];
}

function originOf({ callBackUrl }: PartnerSettings): string {
  return callBackUrl ? new URL(callBackUrl).origin : "";
}

/** The id of the master key follows the first byte of a sealed value. */
const sealedBy = "encode(substring(material FROM 2 FOR 4), 'hex')";

/** The reads and writes of a master key rotation in PostgreSQL. */
export function postgresReSeal(pool: Pool): ReSealStore {
  return {
    async sealedByOthers(masterKeyId, after, limit) {
      const { rows } = await pool.query<SealedKey>(
        `SELECT partner_id AS "partnerId", id AS "keyId", kind, material FROM partner_keys
         WHERE kind <> 'apiKey' AND ${sealedBy} <> $1 AND ($2::uuid IS NULL OR (partner_id, id) > ($2, $3::uuid))
         ORDER BY partner_id, id LIMIT $4`,
        [masterKeyId, after?.partnerId ?? null, after?.keyId ?? null, limit],
      );
      return rows;
    },

    async reseal(keys) {
      if (keys.length === 0) return;
      await pool.query(
        `UPDATE partner_keys k SET material = n.material
         FROM unnest($1::uuid[], $2::uuid[], $3::bytea[], $4::bytea[]) AS n (partner_id, id, before, material)
         WHERE k.partner_id = n.partner_id AND k.id = n.id AND k.material = n.before`,
        [
          keys.map(({ from }) => from.partnerId),
          keys.map(({ from }) => from.keyId),
          keys.map(({ from }) => from.material),
          keys.map(({ material }) => material),
        ],
      );
    },

    async namedValues() {
      const { rows } = await pool.query("SELECT name, sealed FROM sealed_values ORDER BY name");
      return rows;
    },

    async resealNamed(name, from, to) {
      await pool.query("UPDATE sealed_values SET sealed = $3 WHERE name = $1 AND sealed = $2", [name, from, to]);
    },
  };
}
