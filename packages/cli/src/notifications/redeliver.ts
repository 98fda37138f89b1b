import type { Api } from "../api.ts";
import { Failure } from "../failure.ts";
import type { RegisteredPartner } from "../partners/partner.ts";
import { readPages } from "../read-pages.ts";

export interface RedeliveryCounts {
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
): Promise<RedeliveryCounts> {
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

export interface Share {
  readonly partner: string;
  readonly matched: number;
}

interface BulkAnswer {
  readonly matched: number;
  readonly redelivered: number;
}

/** The number of matches by partner, without partners that have none. Changes nothing. */
export async function countMatching(api: Api, filter: BulkFilter): Promise<readonly Share[]> {
  const shares: Share[] = [];
  for (const partner of filter.partner === undefined ? await partnerIds(api) : [filter.partner]) {
    const body = { filter: { ...filter, partner }, dryRun: true };
    const { matched } = await api.post<BulkAnswer>("/operator/v1/redeliveries", body);
    if (matched > 0) shares.push({ partner, matched });
  }
  return shares;
}

/** One request per partner, to show progress. @param onProgress called with the number requested so far */
export async function redeliverShares(
  api: Api,
  shares: readonly Share[],
  filter: BulkFilter,
  to: To,
  onProgress: (done: number) => void,
): Promise<number> {
  let [redelivered, done] = [0, 0];
  for (const { partner, matched } of shares) {
    const body = { filter: { ...filter, partner }, to };
    redelivered += (await api.post<BulkAnswer>("/operator/v1/redeliveries", body)).redelivered;
    done += matched;
    onProgress(done);
  }
  return redelivered;
}

async function partnerIds(api: Api): Promise<string[]> {
  return (await readPages<RegisteredPartner>(api, "/operator/v1/partners")).map(({ id }) => id);
}
