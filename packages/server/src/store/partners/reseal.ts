import type { Pool } from "pg";
import type { ReSealStore, SealedKey } from "../../partners/master-key.ts";

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
