import type { Api } from "../api.ts";
import { Failure } from "../failure.ts";
import type { RegisteredPartner } from "../partners/partner.ts";
import { readPages } from "../read-pages.ts";

export interface RedeliveryCounts {
  readonly redelivered: number;
  /** Are pending anyway. */
  readonly pending: number;
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
  let [redelivered, pending, done] = [0, 0, 0];
  const refused: { id: string; code: string; message: string }[] = [];
  for (const id of ids) {
    try {
      await api.post(`${path}/${encodeURIComponent(id)}/redeliver`, { to });
      redelivered += 1;
    } catch (error) {
      // An unknown id does not stop the others; an unavailable service does.
      if (!(error instanceof Failure) || (error.status !== 404 && error.status !== 409)) throw error;
      if (error.code === "notification_pending") pending += 1;
      else refused.push({ id, code: error.code, message: error.message });
    }
    done += 1;
    onProgress(done);
  }
  return { redelivered, pending, refused };
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
