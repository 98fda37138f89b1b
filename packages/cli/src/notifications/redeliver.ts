import { setTimeout as sleep } from "node:timers/promises";
import type { RedeliveryProgress } from "@paybell/partner/client";
import type { Api } from "../client/api.ts";
import { definedOf } from "../client/credentials.ts";
import { readPages } from "../client/lists.ts";
import type { RegisteredPartner } from "../client/names.ts";
import { Failure } from "../shell/failure.ts";

export interface EachRedelivered {
  readonly redelivered: number;
  /** Still held back, by a pause or by the order of their chain. */
  readonly held: readonly { readonly id: string; readonly by: "paused" | "order" }[];
  readonly refused: readonly { readonly id: string; readonly code: string; readonly message: string }[];
}

type To = "original" | "registered";

/**
 * Redelivers each one separately.
 *
 * @param path of notifications, for the partner's role or the operator's
 * @param onProgress called after each, with the number requested so far
 */
export async function redeliverEach(
  api: Api,
  path: string,
  ids: readonly string[],
  to: To,
  onProgress: (done: number) => void,
): Promise<EachRedelivered> {
  let [redelivered, done] = [0, 0];
  const held: { id: string; by: "paused" | "order" }[] = [];
  const refused: { id: string; code: string; message: string }[] = [];
  for (const id of ids) {
    try {
      const answer = await api.post<{ held?: "paused" | "order" | null }>(
        `${path}/${encodeURIComponent(id)}/redeliver`,
        { to },
      );
      redelivered += 1;
      if (answer.held) held.push({ id, by: answer.held });
    } catch (error) {
      // An unknown id does not stop the others; an unavailable service does.
      if (!(error instanceof Failure) || (error.status !== 404 && error.status !== 409)) throw error;
      refused.push({ id, code: error.code, message: error.message });
    }
    done += 1;
    onProgress(done);
  }
  return { redelivered, held, refused };
}

export interface BulkFilter {
  readonly partner?: string;
  readonly state?: string;
  readonly reason?: string;
  readonly from?: string;
  readonly to?: string;
}

/** The caller: an operator selects among the notifications of every partner, a partner among its own. */
export interface Redeliverer {
  readonly api: Api;
  readonly role: "operator" | "partner";
}

export interface Share {
  /** Absent: the partner that asks. */
  readonly partner?: string;
  readonly matched: number;
}

interface BulkAnswer {
  readonly id: string | null;
  readonly matched: number;
  readonly redelivered: number;
  readonly held: RedeliveryProgress["held"];
}

/** The number of matches by partner, without partners that have none. Changes nothing. */
export async function countMatching({ api, role }: Redeliverer, filter: BulkFilter): Promise<readonly Share[]> {
  const shares: Share[] = [];
  const all = role === "operator" && filter.partner === undefined ? await partnerIds(api) : [filter.partner];
  for (const partner of all) {
    const share = definedOf({ partner });
    const { matched } = await api.post<BulkAnswer>(pathOf(role), { filter: { ...filter, ...share }, dryRun: true });
    if (matched > 0) shares.push({ ...share, matched });
  }
  return shares;
}

/** One request per partner, to show progress. @param onProgress called with the number requested so far */
export async function redeliverShares(
  { api, role }: Redeliverer,
  shares: readonly Share[],
  filter: BulkFilter,
  to: To,
  onProgress: (done: number) => void,
): Promise<Pick<BulkAnswer, "id" | "redelivered" | "held">> {
  let [redelivered, done] = [0, 0];
  let id: string | null = null;
  const held = { paused: 0, order: 0 };
  for (const { matched, ...share } of shares) {
    const body = { filter: { ...filter, ...share }, to, ...(id !== null && { redelivery: id }) };
    const answer: BulkAnswer = await api.post(pathOf(role), body);
    id = answer.id ?? id;
    redelivered += answer.redelivered;
    held.paused += answer.held.paused;
    held.order += answer.held.order;
    done += matched;
    onProgress(done);
  }
  return { id, redelivered, held };
}

const askEveryMs = 1_000;

/**
 * Reads what became of a redelivery; with `signal` again and again, until what still waits waits for a person.
 *
 * @param onProgress called after each reading
 */
export async function redeliveryProgress(
  { api, role }: Redeliverer,
  id: string,
  signal: AbortSignal | undefined,
  onProgress: (done: number, total: number) => void,
): Promise<RedeliveryProgress> {
  for (;;) {
    const progress = await api.get<RedeliveryProgress>(`${pathOf(role)}/${encodeURIComponent(id)}`);
    onProgress(progress.redelivered - progress.pending, progress.redelivered);
    if (signal === undefined || signal.aborted || progress.pending === progress.held.paused) return progress;
    await sleep(askEveryMs, undefined, { signal }).catch(() => undefined);
  }
}

export function progressText({ redelivered, delivered, parked, pending, held }: RedeliveryProgress): string {
  const parts = [`${delivered} of ${redelivered} delivered`];
  if (pending > 0) parts.push(`${pending} pending`);
  if (parked > 0) parts.push(`${parked} parked again`);
  return [parts.join(", "), ...heldText(held)].join("; ");
}

export function heldText({ paused, order }: RedeliveryProgress["held"]): string[] {
  return [
    ...(paused > 0 ? [`${paused} held: the partner is paused`] : []),
    ...(order > 0 ? [`${order} held: an earlier one of the chain is sent first`] : []),
  ];
}

function pathOf(role: Redeliverer["role"]): string {
  return role === "operator" ? "/operator/v1/redeliveries" : "/v1/redeliveries";
}

async function partnerIds(api: Api): Promise<string[]> {
  return (await readPages<RegisteredPartner>(api, "/operator/v1/partners")).map(({ id }) => id);
}
