import type { Pool } from "pg";
import { newId } from "../../ids.ts";
import type { InformedPartner, PartnerMessageStore } from "../../partners/store.ts";
import { planned } from "../database/statement.ts";

// The end of trouble is told only to those who were told of it. The lock orders it after a deletion by an instance that
// has told it already: its rows are gone then.
const begin = planned<{ id: string }>(`
  WITH told AS (
    SELECT FROM partner_messages
    WHERE partner_id = $1 AND channel = $3 AND kind <> 'recovered' AND sent_at IS NOT NULL FOR UPDATE)
  INSERT INTO partner_messages (partner_id, kind, channel, id, notification_id, claimed_until)
  SELECT p.id, $2, $3, $4, $5, now() + $6 * interval '1 s' FROM partners p
  WHERE p.id = $1 AND ($2 <> 'recovered' OR EXISTS (SELECT FROM told))
  ON CONFLICT (partner_id, kind, channel) DO NOTHING
  RETURNING id`);
// A statement of its own: Citus refuses now() in the condition of an ON CONFLICT.
const repeat = planned<{ id: string }>(`
  UPDATE partner_messages SET claimed_until = now() + $4 * interval '1 s'
  WHERE partner_id = $1 AND kind = $2 AND channel = $3 AND sent_at IS NULL AND claimed_until < now()
  RETURNING id`);

// Its end is being told, or was told and not forgotten: the instance died, or the database was away.
const forgetEnded = planned(`
  DELETE FROM partner_messages WHERE partner_id = $1 AND channel = $2 AND EXISTS (
    SELECT FROM partner_messages e WHERE e.partner_id = $1 AND e.channel = $2 AND e.kind = 'recovered')`);

export function postgresPartnerMessages(pool: Pool): PartnerMessageStore {
  return {
    async claim(partnerId, kind, channel, notificationId, leaseS) {
      if (kind !== "recovered") await forgetEnded.run(pool, [partnerId, channel]);
      const begun = await begin.first(pool, [partnerId, kind, channel, newId(), notificationId, leaseS]);
      return (begun ?? (await repeat.first(pool, [partnerId, kind, channel, leaseS])))?.id;
    },

    async sent(partnerId, kind, channel) {
      const text = "UPDATE partner_messages SET sent_at = now() WHERE partner_id = $1 AND kind = $2 AND channel = $3";
      await pool.query(text, [partnerId, kind, channel]);
    },

    async giveUp(partnerId, kind, channel) {
      const text = `UPDATE partner_messages SET claimed_until = 'infinity'
        WHERE partner_id = $1 AND kind = $2 AND channel = $3`;
      await pool.query(text, [partnerId, kind, channel]);
    },

    async found(partnerId, notificationId) {
      const text = `UPDATE partner_messages SET notification_id = $2
        WHERE partner_id = $1 AND kind <> 'recovered' AND notification_id IS DISTINCT FROM $2`;
      await pool.query(text, [partnerId, notificationId]);
    },

    async informed() {
      const text = `SELECT DISTINCT ON (partner_id, channel)
          partner_id AS "partnerId", channel, id, notification_id AS "notificationId", sent_at IS NOT NULL AS "isInformed"
        FROM partner_messages WHERE kind <> 'recovered' AND (sent_at IS NOT NULL OR claimed_until = 'infinity')
        ORDER BY partner_id, channel, sent_at`;
      return (await pool.query<InformedPartner>(text)).rows;
    },

    async forget({ partnerId, channel, id }) {
      const text = `DELETE FROM partner_messages WHERE partner_id = $1 AND channel = $2 AND EXISTS (
        SELECT FROM partner_messages t WHERE t.partner_id = $1 AND t.channel = $2 AND t.id = $3)`;
      await pool.query(text, [partnerId, channel, id]);
    },
  };
}
