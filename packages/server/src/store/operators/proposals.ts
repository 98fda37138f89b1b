import type { Pool } from "pg";
import type { AuditKeys } from "../../operators/audit.ts";
import type { Proposal, ProposalStore } from "../../operators/proposals.ts";
import { planned } from "../database/statement.ts";
import { inTransaction } from "../database/transaction.ts";
import { appendEntry, seen } from "./audit.ts";

const shown = `id, action, partner_id AS "partnerId", input::json AS input,
  json_build_object('name', proposed_by, 'tokenId', token_id, 'subject', subject) AS proposer,
  created_at AS "createdAt", expires_at AS "expiresAt"`;
/** What a proposal's MAC covers: every column. */
const covered = `json_build_array(id, action, partner_id, input, proposed_by, token_id, subject,
  extract(epoch FROM created_at), extract(epoch FROM expires_at))::text AS covered`;

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

interface ProposalsParts {
  readonly keys: Pick<AuditKeys, "mac" | "isRight">;
  /** The text that the MAC of an entry of the audit covers. */
  entryText(seq: number, hash: string): string;
}

interface ProposalRow extends Proposal {
  readonly covered: string;
  readonly mac: Buffer | null;
}

function proposalText(row: Pick<ProposalRow, "covered">): string {
  return `proposal\n${row.covered}`;
}

/** Proposals in PostgreSQL, whose clock decides when one has expired. What has no MAC of ours is nobody's. */
export function postgresProposals(pool: Pool, { keys, entryText }: ProposalsParts): ProposalStore {
  /** The last change of ours. Forged ones must not hide it, however many they are. */
  async function lastAudited(before: string): Promise<number> {
    const rows = await ruleChanges.rows(pool, [before]);
    const ours = rows.find(({ seq, hash, mac }) => mac !== null && keys.isRight(mac, entryText(Number(seq), hash)));
    const last = rows.at(pageMax - 1);
    return ours === undefined && last !== undefined ? await lastAudited(last.seq) : (ours?.minutes ?? 0);
  }

  /** By the key that is used now: one that was replaced may have been seen. */
  function ours(rows: readonly ProposalRow[]): Proposal[] {
    return rows
      .filter((row) => row.mac !== null && keys.isRight(row.mac, proposalText(row), keys.mac("")))
      .map(({ covered: _, mac: __, ...proposal }) => proposal);
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
        await client.query(
          `INSERT INTO proposals (id, action, partner_id, input, proposed_by, token_id, subject, expires_at)
           VALUES ($1, $2, $3, $4, $5, $6, $7, now() + $8 * interval '1 minute')`,
          [
            ...[id, action, partnerId, JSON.stringify(input)],
            ...[proposer.name, proposer.tokenId, proposer.subject, expiresInMinutes],
          ],
        );
        // Citus makes no JSON in RETURNING.
        const { rows } = await client.query<Omit<ProposalRow, "mac">>(
          `SELECT ${shown}, ${covered} FROM proposals WHERE id = $1`,
          [id],
        );
        const { covered: text, ...proposal } = rows[0] as Omit<ProposalRow, "mac">;
        const mac = keys.mac(proposalText({ covered: text }));
        await client.query("UPDATE proposals SET mac = $2 WHERE id = $1", [id, mac]);
        await appendEntry(client, pool, id);
        return proposal;
      }),

    async list() {
      const { rows } = await pool.query<ProposalRow>(
        `SELECT ${shown}, ${covered}, mac FROM proposals WHERE expires_at > now() ORDER BY id LIMIT 1000`,
      );
      return ours(rows);
    },

    async find(id) {
      const { rows } = await seen(pool).query<ProposalRow>(
        `SELECT ${shown}, ${covered}, mac FROM proposals WHERE id = $1 AND expires_at > now()`,
        [id],
      );
      return ours(rows)[0];
    },

    take: (id) =>
      inTransaction(pool, async (client) => {
        const { rowCount } = await client.query("DELETE FROM proposals WHERE id = $1 AND expires_at > now()", [id]);
        if (rowCount === 1) await appendEntry(client, pool);
        return rowCount === 1;
      }),
  };
}
