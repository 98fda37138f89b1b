import type { Pool } from "pg";
import type { Proposal, ProposalStore } from "../../operators/proposals.ts";
import { planned } from "../database/statement.ts";
import { inTransaction } from "../database/transaction.ts";
import { appendEntry, seen } from "./audit.ts";

const shown = `id, action, partner_id AS "partnerId", input::json AS input,
  json_build_object('name', proposed_by, 'tokenId', token_id, 'subject', subject) AS proposer,
  created_at AS "createdAt", expires_at AS "expiresAt"`;

const pageMax = 100;
const afterAll = String(2n ** 63n - 1n);
/** A page of the entries of the audit that changed the rule, newest first. */
const ruleChanges = planned<RuleChange>(`
  SELECT seq, hash, mac, substring(after FROM '"minutes":(\\d+)')::integer AS minutes FROM audit
  WHERE action = 'changeTwoAdminRule' AND after ~ '"minutes":\\d' AND seq < $1
  ORDER BY seq DESC LIMIT ${pageMax}`);
const setRule = "INSERT INTO two_admin_rule (minutes) VALUES ($1)";

interface RuleChange {
  readonly seq: string;
  readonly hash: string;
  readonly mac: Buffer | null;
  readonly minutes: number;
}

/** Whether we wrote an entry of the audit: by its MAC. One without a MAC is nobody's. */
type IsOurs = (seq: number, hash: string, mac: Buffer) => boolean;

/** Proposals in PostgreSQL, whose clock decides when one has expired. */
export function postgresProposals(pool: Pool, isOurs: IsOurs): ProposalStore {
  /** The last change of ours. Forged ones must not hide it, however many they are. */
  async function lastAudited(before: string): Promise<number> {
    const rows = await ruleChanges.rows(pool, [before]);
    const ours = rows.find(({ seq, hash, mac }) => mac !== null && isOurs(Number(seq), hash, mac));
    const last = rows.at(pageMax - 1);
    return ours === undefined && last !== undefined ? await lastAudited(last.seq) : (ours?.minutes ?? 0);
  }

  return {
    /** If somebody set the row to 0 in the database, the last change that the audit has counts. */
    async rule() {
      const client = seen(pool);
      const { rows } = await client.query<{ minutes: number }>("SELECT minutes FROM two_admin_rule");
      const minutes = rows[0]?.minutes ?? 0;
      // Within a change, its entry does not exist yet: it has what the row becomes.
      if (minutes > 0 || client !== pool) return minutes;
      return await lastAudited(afterAll);
    },

    changeRule: (minutes) =>
      inTransaction(pool, async (client) => {
        await client.query(`${setRule} ON CONFLICT (one) DO UPDATE SET minutes = excluded.minutes`, [minutes]);
        await appendEntry(client, pool);
      }),

    async beginRule(minutes) {
      await pool.query(`${setRule} ON CONFLICT (one) DO NOTHING`, [minutes]);
    },

    add: ({ id, action, partnerId, input, proposer }, expiresInMinutes) =>
      inTransaction(pool, async (client) => {
        await client.query("DELETE FROM proposals WHERE expires_at < now()");
        const { rows } = await client.query<Proposal>(
          `INSERT INTO proposals (id, action, partner_id, input, proposed_by, token_id, subject, expires_at)
           VALUES ($1, $2, $3, $4, $5, $6, $7, now() + $8 * interval '1 minute') RETURNING ${shown}`,
          [
            ...[id, action, partnerId, JSON.stringify(input)],
            ...[proposer.name, proposer.tokenId, proposer.subject, expiresInMinutes],
          ],
        );
        await appendEntry(client, pool, id);
        return rows[0] as Proposal;
      }),

    async list() {
      const { rows } = await pool.query<Proposal>(
        `SELECT ${shown} FROM proposals WHERE expires_at > now() ORDER BY id LIMIT 1000`,
      );
      return rows;
    },

    async find(id) {
      const { rows } = await seen(pool).query<Proposal>(
        `SELECT ${shown} FROM proposals WHERE id = $1 AND expires_at > now()`,
        [id],
      );
      return rows[0];
    },

    take: (id) =>
      inTransaction(pool, async (client) => {
        const { rowCount } = await client.query("DELETE FROM proposals WHERE id = $1 AND expires_at > now()", [id]);
        if (rowCount === 1) await appendEntry(client, pool);
        return rowCount === 1;
      }),
  };
}
