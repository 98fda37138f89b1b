import { idTimeMs, isUuid, lowestId, type NotificationId, type PartnerId } from "../../ids.ts";
import type { KeyRange, NotificationKey, NotificationStore } from "../../notifications/store.ts";
import { queryAlongIndexes } from "../database/along-indexes.ts";
import type { Homes } from "../database/homes.ts";
import { dayMs } from "../schema/partitions.ts";

// Every key begins with its partner, so a search without one is repeated per partner: a thousand index steps take
// milliseconds, while an index only for the operator's searches would cost every completion.
const wanted = `
  wanted AS (
    SELECT $1::uuid AS id WHERE $1::uuid IS NOT NULL
    UNION ALL
    SELECT p.id FROM partners p WHERE $1::uuid IS NULL)`;

const inHistory = "FROM notifications n WHERE n.partner_id = w.id AND n.id = $2::uuid";
const outlived = "FROM parked n WHERE n.partner_id = w.id AND n.id = $2::uuid AND n.notification IS NOT NULL";
const of = "FROM transactions t WHERE t.partner_id = w.id AND t.notification_id IS NOT NULL AND";

const located = `
  SELECT f.partner_id AS "partnerId", f.id FROM wanted w CROSS JOIN LATERAL (
    (SELECT n.partner_id, n.id ${inHistory} LIMIT 1) UNION (SELECT n.partner_id, n.id ${outlived} LIMIT 1)) AS f`;

const locate = `WITH ${wanted} ${located}`;

/** The parts of a search: each is one index step per partner. $2 is the text, a UUID in the first ones. */
const byUuid = [
  located,
  ...[
    "t.id = $2::uuid",
    "t.req_id = $2::uuid::text AND t.origin = 'command'",
    "t.req_id = $2::uuid::text AND t.origin = 'switch'",
  ].map(arm),
];
/** The column has 64 characters: the rest of a longer text is compared with the facts. */
const byText = [
  arm("t.external_id = $2 AND t.origin = 'switch'"),
  arm(`t.merchant_trans_id COLLATE "C" = left($2, 64) AND t.facts #>> '{fields,merchantTransId}' = $2`),
];
const byBeginning = [
  arm(`t.merchant_trans_id COLLATE "C" >= left($2, 64)
    AND t.merchant_trans_id COLLATE "C" < left($2, 64) || chr(1114111)
    AND starts_with(t.facts #>> '{fields,merchantTransId}', $2)`),
];

function arm(condition: string): string {
  return `
  SELECT f.partner_id AS "partnerId", f.id FROM wanted w CROSS JOIN LATERAL (
    SELECT t.partner_id, t.notification_id AS id ${of} ${condition} LIMIT $3) AS f`;
}

function lookUp(arms: readonly string[]): string {
  return `WITH ${wanted} SELECT "partnerId", id FROM (${arms.join(" UNION ")}) AS found LIMIT $3`;
}

function keysOf(range: KeyRange): string {
  const order = range.order === "newest" ? "DESC" : "ASC";
  const arm = (table: string, condition: string) => `
    (SELECT k.partner_id, k.id FROM ${table} k WHERE k.partner_id = w.id AND k.id >= $2 AND k.id < $3 ${condition}
     ORDER BY k.id ${order} LIMIT $4)`;
  const arms = {
    history: `${arm("notifications", "")} UNION ${arm("parked", "AND k.notification IS NOT NULL")}`,
    pending: arm("pending", ""),
    parked: arm("parked", "AND ($5::text[] IS NULL OR k.reason = ANY ($5))"),
  }[range.among];
  return `
    WITH ${wanted} SELECT f.partner_id AS "partnerId", f.id FROM wanted w CROSS JOIN LATERAL (${arms}) AS f
    ORDER BY f.id ${order} LIMIT $4`;
}

/** These together span 127 days; the rest of history is one window. */
const windowMsMax = 64 * dayMs;

export async function locateKey(
  homes: Homes,
  id: NotificationId,
  partnerId: PartnerId | undefined,
): Promise<NotificationKey | undefined> {
  return (await askAlong(homes, partnerId, locate, [partnerId ?? null, id]))[0];
}

export async function lookUpKeys(
  homes: Homes,
  q: string,
  partnerId: PartnerId | undefined,
  rowsMax: number,
): ReturnType<NotificationStore["lookUp"]> {
  const beginning = () => askAlong(homes, partnerId, lookUp(byBeginning), [partnerId ?? null, q, rowsMax]);
  const uuid = isUuid(q) ? [q] : [];
  const asked = await Promise.all([
    ...uuid.map((id) => askAlong(homes, partnerId, lookUp(byUuid), [partnerId ?? null, id, rowsMax])),
    askAlong(homes, partnerId, lookUp(byText), [partnerId ?? null, q, rowsMax]),
  ]);
  const exact = asked.flat();
  if (exact.length >= rowsMax) return { merchantTransId: q };
  const found = exact.length > 0 ? exact : await beginning();
  if (found.length >= rowsMax) return { beginning: q };
  const keys = new Map(found.map((key) => [`${key.partnerId} ${key.id}`, key]));
  return inOrder([...keys.values()], "newest");
}

/** Keys in the order of their ids, which is the order of time. */
export async function readKeys(homes: Homes, range: KeyRange, rowsMax: number): Promise<readonly NotificationKey[]> {
  const keys: NotificationKey[] = [];
  for (const [fromId, belowId] of windowsOf(range)) {
    const left = rowsMax - keys.length;
    const values: unknown[] = [range.partnerId ?? null, fromId, belowId, left];
    if (range.among === "parked") values.push(range.reasons ?? null);
    const rows = await askAlong(homes, range.partnerId, keysOf(range), values);
    keys.push(...inOrder(rows, range.order).slice(0, left));
    if (keys.length >= rowsMax) break;
  }
  return keys;
}

/**
 * History is scanned in windows of 1, 2, 4, 8 … days: a page of the newest reads one day, not all of history. The other
 * tables are small and have one index: a single window.
 */
function* windowsOf(range: KeyRange): Generator<readonly [string, string]> {
  if (range.among !== "history") return yield [range.fromId, range.belowId];
  let { fromId, belowId } = range;
  for (let spanMs = dayMs; fromId < belowId; spanMs = spanMs < windowMsMax ? spanMs * 2 : Number.POSITIVE_INFINITY) {
    if (range.order === "newest") {
      const edge = later(fromId, lowestId(idTimeMs(belowId) - spanMs));
      yield [edge, belowId];
      belowId = edge;
    } else {
      const edge = earlier(belowId, lowestId(idTimeMs(fromId) + spanMs));
      yield [fromId, edge];
      fromId = edge;
    }
  }
}

function later(a: string, b: string): string {
  return a > b ? a : b;
}

function earlier(a: string, b: string): string {
  return a < b ? a : b;
}

/** Queries the partner's home, or every home without a partner. */
async function askAlong(
  homes: Homes,
  partnerId: PartnerId | undefined,
  text: string,
  values: readonly unknown[],
): Promise<readonly NotificationKey[]> {
  const asked = partnerId === undefined ? homes.all : [homes.of(partnerId)];
  const answers = await Promise.all(asked.map(({ pool }) => queryAlongIndexes<NotificationKey>(pool, text, values)));
  return answers.flat();
}

function inOrder(keys: readonly NotificationKey[], order: KeyRange["order"]): NotificationKey[] {
  return [...keys].sort((a, b) => (a.id < b.id === (order === "oldest") ? -1 : 1));
}

const searchableMax = 64;

/** The searchable prefix of a merchantTransId: 64 whole characters. */
export function searchable(merchantTransId: string | undefined): string | null {
  if (merchantTransId === undefined || merchantTransId === "") return null;
  if (merchantTransId.length <= searchableMax) return merchantTransId;
  return [...merchantTransId].slice(0, searchableMax).join("");
}
