import type { NotifiedCommand } from "@paybell/contract";
import type { Clock } from "../clock.ts";
import type { ContentMac } from "../delivery/attempt/content-mac.ts";
import { dataOf } from "../delivery/attempt/envelope.ts";
import { comingAttemptsMs, scheduleEndMs } from "../delivery/attempt/schedule.ts";
import { badFields, type FieldProblem, ServiceError } from "../errors.ts";
import { idTimeMs, lowestId, type NotificationId, newId, type PartnerId, type RedeliveryId, readId } from "../ids.ts";
import { callbackUrlOf, type NotificationState, queueOf, registeredUrl } from "../notification.ts";
import type { Partner } from "../partners/partner.ts";
import { withoutReport } from "../telemetry/events.ts";
import type { LongPolls, WaitOptions } from "./long-polls.ts";
import { explain, type ProofSigner } from "./proof.ts";
import {
  backlogOf,
  type PulledPage,
  PullNotes,
  type PullOptions,
  pullPage,
  requireAsCommitted,
  type Seal,
} from "./pull.ts";
import { testSale } from "./sample.ts";
import type { Held, KeyRange, NotificationKey, NotificationStatus, NotificationStore, SubjectMatch } from "./store.ts";
import {
  attemptView,
  isoOrNull,
  isoTime,
  type NotificationDetail,
  type NotificationSummary,
  summaryOf,
  unknownSubject,
} from "./view.ts";

export interface LongPollOptions extends PullOptions {
  /** The time for which an empty page may wait for a new notification. Absent: not at all. */
  readonly wait?: (WaitOptions & { partnerNow(): Promise<Partner> }) | undefined;
}

export interface NotificationsParts {
  readonly store: NotificationStore;
  readonly seal: Seal;
  readonly contents: Pick<ContentMac, "of" | "isAsCommitted">;
  readonly arrivals: Pick<LongPolls, "wait" | "notify">;
  readonly proofs: Pick<ProofSigner, "prove" | "proveKept">;
  readonly clock: Pick<Clock, "nowMs">;
  readonly findPartner: (id: PartnerId) => Promise<Partner | undefined>;
  /** A UUID v4, for the reqId of a test. */
  readonly newReqId: () => string;
  /** Called when something of this partner was made due. */
  readonly onDue: (partnerId: PartnerId) => void;
}

/** The filter of a search. Times are ISO 8601: from inclusive, to exclusive. */
export interface NotificationFilter {
  readonly partnerId?: PartnerId | undefined;
  readonly state?: NotificationState | undefined;
  /** Why the last attempt failed, or one of several reasons. */
  readonly reason?: string | readonly string[] | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

export interface NotificationSearch extends NotificationFilter, SubjectMatch {
  /** A notification id, transaction id, reqId, externalId or merchantTransId; if none matches, a prefix. */
  readonly q?: string | undefined;
  /** `next` of the previous page. */
  readonly after?: string | undefined;
  readonly limit: number;
}

export interface RedeliveryFilter extends NotificationFilter {
  /** `parked` when absent. */
  readonly state?: NotificationState | undefined;
  /** Only these, in whatever state. */
  readonly ids?: readonly string[] | undefined;
}

export interface RedeliveryOptions {
  readonly to: "original" | "registered";
  /** Only counts. */
  readonly dryRun?: boolean | undefined;
  /** The maximum number; of parked ones, a caller that stops and continues repeats until fewer match. */
  readonly limit?: number | undefined;
  /** The redelivery that this one continues. */
  readonly redelivery?: string | undefined;
}

const urlsShown = 5;
const searchRowsMax = 500;
/** What more than so many match is found among the newest, as by any other part of the content. */
const lookUpRowsMax = 5_000;
/** A search for a rare state scans this many rows, and then returns what it found, with a `next` to continue from. */
const scanRowsMax = 10_000;
/** The time for scanning contents, of all partners. The caller gets what was found by then. */
const scanMsMax = 80;
const scanRows = 500;
/** Clocks of instances differ, so an id may be slightly ahead of this instance's time. */
const clocksApartMs = 86_400_000;
const attemptRowsMax = 500;
const eventRowsMax = 100;
const idsShown = 100;
/** The newest attempts of a partner that tell which key its endpoint opens with. */
const keyUseRows = 1_000;
const keyUseMs = 7 * 86_400_000;

/** The operations of partners and the operator on existing notifications. */
export class Notifications {
  readonly #parts: NotificationsParts;
  readonly #pulls: PullNotes;

  constructor(parts: NotificationsParts) {
    this.#parts = parts;
    this.#pulls = new PullNotes(parts.store, parts.clock);
  }

  /**
   * Reads everything created for the partner that retention still holds, in commit order, sealed as it would be sent
   * now.
   *
   * @param options.limit maximum number of items, up to 500; fewer if they exceed 8 MiB
   * @throws ServiceError `invalid_cursor`, `cursor_from_another_history`, `cursor_expired`; while waiting also
   * `too_many_requests`
   */
  async pull(partner: Partner, { wait: patience, ...options }: LongPollOptions): Promise<PulledPage> {
    const { store, seal, arrivals } = this.#parts;
    const { page, end } = await pullPage(store, seal, partner, options);
    const { after = "now" } = options;
    if (after !== "now") await this.#pulls.note(partner.id, after, page.items.length === 0);
    if (patience === undefined || page.items.length > 0) return page;
    if (!(await arrivals.wait(partner.id, end, patience))) return page;
    // Keys and settings may have changed during the wait, and the caller may have lost access.
    const partnerNow = await patience.partnerNow();
    return (await pullPage(store, seal, partnerNow, { ...options, after: page.next })).page;
  }

  /** Counts what the partner has not received, and tells how far it has pulled. */
  backlog(partnerId: PartnerId) {
    return backlogOf(this.#parts.store, partnerId);
  }

  /** Undefined for an unknown id and for another partner's. */
  async find(id: string, partnerId?: PartnerId): Promise<NotificationDetail | undefined> {
    const status = await this.#locate(id, partnerId);
    return status && this.#detail(status);
  }

  /** The same for the operator, with the recorded events. */
  async inspect(id: string) {
    const status = await this.#locate(id);
    if (status === undefined) return undefined;
    const { store } = this.#parts;
    const [detail, events] = await Promise.all([this.#detail(status), store.events(status, eventRowsMax)]);
    return {
      ...detail,
      events: events.map(({ atMs, kind, detail }) => ({ kind, at: isoTime(atMs), detail: withoutReport(detail) })),
    };
  }

  /**
   * Shows what an attempt would send now, for callers that may read the partner's IPNs. It counts against the key's
   * seals.
   *
   * @throws ServiceError `not_found`
   */
  async explain(id: string, partnerOf: (id: PartnerId) => Promise<Partner | undefined>) {
    const { store, seal } = this.#parts;
    const known = readId<"notification">(id);
    const key = known && (await store.locate(known));
    const content = key && (await store.contents(key.partnerId, [key.id])).get(key.id);
    const partner = key && (await partnerOf(key.partnerId));
    if (content === undefined || partner === undefined) throw new ServiceError("not_found");
    return await explain(content, partner, seal);
  }

  /**
   * Seals it as an attempt would now, for its partner alone. It counts against the key's seals.
   *
   * @throws ServiceError `not_found`, `content_changed`
   */
  async sealed(id: string, partner: Partner) {
    const known = readId<"notification">(id);
    const content = known && (await this.#parts.store.contents(partner.id, [known])).get(known);
    if (content === undefined) throw new ServiceError("not_found", "There is no such notification.");
    const { settings } = partner;
    const envelope = await this.#parts.seal(partner, content, callbackUrlOf(content, settings) ?? "");
    return {
      data: dataOf(envelope.body),
      headers: envelope.headers,
      cipher: settings.cipher,
      encoding: settings.encoding,
      encryptionKeyId: partner.keys.encryption.id,
    };
  }

  /**
   * Returns its history, or what is kept of it, signed for a dispute.
   *
   * @throws ServiceError `not_found`, `content_changed`
   */
  async prove(id: string) {
    const { store, proofs, clock } = this.#parts;
    const status = await this.#locate(id);
    // Once its day was dropped, only what was kept proves the delivery of one that a redelivery made pending or parked.
    const known = status?.state === "accepted" ? undefined : readId<"notification">(id);
    const kept = known && (await store.keptProof(known));
    if (kept !== undefined) return proofs.proveKept(kept, clock.nowMs());
    const content = status && (await store.contents(status.partnerId, [status.id])).get(status.id);
    if (status === undefined || content === undefined) throw new ServiceError("not_found");
    requireAsCommitted(this.#parts.contents, status.partnerId, content);
    return proofs.prove(await this.#detail(status), content, clock.nowMs());
  }

  /**
   * Returns the newest first. A page may have fewer than `limit` items and still have a `next`.
   *
   * @throws ServiceError `invalid_value` of a reason: accepted ones have none; `invalid_cursor`
   */
  async search(search: NotificationSearch) {
    if (search.reason !== undefined && search.state === "accepted") {
      const message = "reason is not allowed with state=accepted: these have none.";
      throw badFields([{ field: "reason", code: "invalid_value", message }]);
    }
    const limit = Math.min(Math.max(1, search.limit), searchRowsMax);
    const range = this.#range(search, "newest");
    const { q } = search;
    const named = q === undefined ? {} : await this.#parts.store.lookUp(q, search.partnerId, lookUpRowsMax);
    const [keys, match] = Array.isArray(named) ? [named, search] : [undefined, { ...search, ...named }];
    const found: NotificationStatus[] = [];
    let scanned = 0;
    // A search for rare items reads in larger steps.
    const isByStatus = search.state === "accepted" || (search.reason !== undefined && search.state !== "parked");
    const isRare = search.partnerId !== undefined && (matchesContent(match) || isByStatus);
    const endsMs = matchesContent(match) ? this.#parts.clock.nowMs() + scanMsMax : Number.POSITIVE_INFINITY;
    for await (const { statuses, lastId, rows } of this.#walk(range, isRare ? scanRows : limit + 1, match, keys)) {
      scanned += rows;
      found.push(...statuses.filter((status) => isIn(search, status)));
      if (found.length > limit) break;
      if (scanned >= scanRowsMax || this.#parts.clock.nowMs() > endsMs)
        return { items: await this.#listed(found), next: lastId };
    }
    const items = await this.#listed(found.slice(0, limit));
    return { items, next: found.length > limit ? (items.at(-1)?.id ?? null) : null };
  }

  async #listed(statuses: readonly NotificationStatus[]) {
    const subjects = await this.#parts.store.subjects(statuses);
    return statuses.map((status) => {
      return { ...summaryOf(status), subject: subjects.get(status.id) ?? unknownSubject };
    });
  }

  /**
   * Makes an accepted or parked notification pending again, with a whole schedule, and a pending one due now.
   *
   * @param partnerId the required owner; undefined: any
   * @throws ServiceError `not_found` for an unknown id and for another partner's
   */
  async redeliver(partnerId: PartnerId | undefined, id: string, to: "original" | "registered") {
    const { store } = this.#parts;
    const known = readId<"notification">(id);
    const key = known && (partnerId === undefined ? await store.locate(known) : { partnerId, id: known });
    const held = key && (await store.redeliver(key.partnerId, [key.id], to)).get(key.id);
    if (key === undefined || held === undefined) throw new ServiceError("not_found");
    this.#parts.onDue(key.partnerId);
    return { ...(await this.#summary(key)), held };
  }

  /**
   * Redelivers everything that `filter` selects, in batches, each partner's oldest first.
   *
   * @throws ServiceError `invalid_value`, `missing_field`: accepted ones only since a time
   */
  async redeliverMany(
    filter: RedeliveryFilter,
    { to, dryRun = false, limit = Number.POSITIVE_INFINITY, redelivery }: RedeliveryOptions,
  ) {
    const [problem, ...problems] = redeliveryProblems(filter).map(({ field, code, rule }) => {
      return { field, code, message: `${field} ${rule}.` };
    });
    if (problem) throw badFields([problem, ...problems]);
    const { state = filter.ids === undefined ? "parked" : undefined } = filter;
    const id = (redelivery && readId<"redelivery">(redelivery)) || newId<"redelivery">(this.#parts.clock.nowMs());
    const ids: NotificationId[] = [];
    const held = { paused: 0, order: 0 };
    let [matched, redelivered] = [0, 0];
    const commands: Partial<Record<NotifiedCommand, number>> = {};
    const urls = new Set<string | null>();
    let oldestMs = Number.POSITIVE_INFINITY;
    const result = () => {
      const oldestAt = Number.isFinite(oldestMs) ? isoTime(oldestMs) : null;
      const selection = { commands, oldestAt, urls: [...urls].slice(0, urlsShown) };
      return { id: redelivered > 0 ? id : null, matched, redelivered, held, ids, selection };
    };
    for await (const { partnerId, batch } of this.#selected(filter, state)) {
      const selected = batch
        .filter((status) => state === undefined || status.state === state)
        .slice(0, limit - matched);
      for (const { command, createdAtMs, callBackUrl } of selected) {
        commands[command] = (commands[command] ?? 0) + 1;
        oldestMs = Math.min(oldestMs, createdAtMs);
        if (urls.size < urlsShown) urls.add(to === "registered" ? null : callBackUrl);
      }
      const matching = selected.map((status) => status.id);
      matched += matching.length;
      ids.push(...matching.slice(0, idsShown - ids.length));
      for (const by of dryRun ? [] : await this.#redeliverBatch(partnerId, matching, to, id, state)) {
        redelivered += 1;
        if (by !== null) held[by] += 1;
      }
      if (matched >= limit) return result();
    }
    return result();
  }

  /**
   * Counts what became of a redelivery of many.
   *
   * @param partnerId undefined: of all partners
   * @throws ServiceError `not_found`
   */
  async redelivery(text: string, partnerId?: PartnerId) {
    const id = readId<"redelivery">(text);
    const counts = id && (await this.#parts.store.redeliveryCounts(id, partnerId));
    if (id === undefined || counts === undefined) throw new ServiceError("not_found", "There is no such redelivery.");
    const { nextAttemptMs, ...progress } = counts;
    const delivered = counts.redelivered - counts.pending - counts.parked;
    return { id, createdAt: isoTime(idTimeMs(id)), ...progress, delivered, nextAttemptAt: isoOrNull(nextAttemptMs) };
  }

  /** Results of the partner's newest deliveries, by the version of the key that sealed them: they show a rotation. */
  async keyUse(partnerId: PartnerId) {
    const { store, clock } = this.#parts;
    const uses = await store.keyUse(partnerId, clock.nowMs() - keyUseMs, keyUseRows);
    return uses.map(({ lastAcceptedAtMs, ...use }) => ({
      ...use,
      lastAcceptedAt: isoOrNull(lastAcceptedAtMs),
    }));
  }

  /** Sends a sample Sale to its registered URL: an ordinary notification without a transaction. */
  async sendTest(partner: Partner): Promise<NotificationSummary> {
    const { store, arrivals, clock, newReqId, onDue } = this.#parts;
    if (registeredUrl(partner.settings, "SALE") === null) throw new ServiceError("no_callback_url");
    const nowMs = clock.nowMs();
    const key: NotificationKey = { partnerId: partner.id, id: newId<"notification">() };
    const facts = testSale({ transactionId: newId(), reqId: newReqId(), at: new Date(nowMs) });
    const queue = queueOf({ command: "SALE", callBackUrl: null }, partner.settings);
    const fixed = {
      ...key,
      command: "SALE",
      callBackUrl: null,
      originalId: null,
      content: JSON.stringify(facts),
    } as const;
    await store.insertTest({ ...fixed, chainId: newId(), queue, mac: this.#parts.contents.of(fixed) });
    arrivals.notify(partner.id);
    onDue(partner.id);
    return this.#summary(key);
  }

  #range(filter: NotificationFilter & { readonly after?: string | undefined }, order: KeyRange["order"]): KeyRange {
    const after = filter.after === undefined ? undefined : readId<"notification">(filter.after);
    if (filter.after !== undefined && after === undefined) throw new ServiceError("invalid_cursor");
    const toId = lowestId(timeMs("to", filter.to) ?? this.#parts.clock.nowMs() + clocksApartMs);
    return {
      partnerId: filter.partnerId,
      // Accepted ones have no table of their own: they are the rest of history.
      among: filter.state === undefined || filter.state === "accepted" ? "history" : filter.state,
      fromId: lowestId(timeMs("from", filter.from) ?? 0),
      belowId: after !== undefined && after < toId ? after : toId,
      reasons: reasonsOf(filter),
      order,
    };
  }

  /**
   * Statuses in the order of the range, read in bounded steps; only those that match.
   *
   * @param named those that were looked up; undefined: all of the range
   */
  async *#walk(
    range: KeyRange,
    rowsMax: number,
    match: SubjectMatch,
    named: readonly NotificationKey[] | undefined,
  ): AsyncGenerator<Step> {
    const { store } = this.#parts;
    const step = async (keys: readonly NotificationKey[]) => {
      const matching = matchesContent(match) ? await store.matching(keys, match) : keys;
      return { statuses: await store.statuses(matching), lastId: keys.at(-1)?.id ?? null, rows: keys.length };
    };
    if (named !== undefined) {
      const within = named.filter(({ id }) => id >= range.fromId && id < range.belowId);
      for (let at = 0; at < within.length; at += scanRows) yield await step(within.slice(at, at + scanRows));
      return;
    }
    let { belowId } = range;
    for (;;) {
      const keys = await store.keys({ ...range, belowId }, rowsMax);
      yield await step(keys);
      const last = keys.at(-1);
      if (last === undefined || keys.length < rowsMax) return;
      belowId = last.id;
    }
  }

  async *#batches(range: KeyRange): AsyncGenerator<readonly NotificationStatus[]> {
    const { store } = this.#parts;
    let { fromId } = range;
    for (;;) {
      const keys = await store.keys({ ...range, fromId }, scanRows);
      yield await store.statuses(keys);
      const last = keys.at(-1);
      if (last === undefined || keys.length < scanRows) return;
      fromId = following(last.id);
    }
  }

  /** The selection of a redelivery, in batches of one partner. */
  async *#selected(
    { ids, ...filter }: RedeliveryFilter,
    state: NotificationState | undefined,
  ): AsyncGenerator<{ partnerId: PartnerId; batch: readonly NotificationStatus[] }> {
    const { store } = this.#parts;
    if (ids !== undefined) {
      const known = [...new Set(ids)].flatMap((text) => readId<"notification">(text) ?? []).sort();
      const keys = await Promise.all(known.map((id) => store.locate(id, filter.partnerId)));
      const statuses = await store.statuses(keys.filter((key) => key !== undefined));
      for (const [partnerId, batch] of Map.groupBy(statuses, (one) => one.partnerId)) yield { partnerId, batch };
      return;
    }
    // Partner by partner: a step over all of them would read a batch of each, and use one.
    for (const partnerId of filter.partnerId ? [filter.partnerId] : await store.partnerIds()) {
      const range = this.#range({ ...filter, state, partnerId }, "oldest");
      for await (const batch of this.#batches(range)) yield { partnerId, batch };
    }
  }

  async #redeliverBatch(
    partnerId: PartnerId,
    ids: readonly NotificationId[],
    to: "original" | "registered",
    redelivery: RedeliveryId,
    state: NotificationState | undefined,
  ): Promise<readonly (Held | null)[]> {
    if (ids.length === 0) return [];
    // Those that waited when they were selected may be accepted by now, and are not sent once more then.
    const ofAccepted = state === undefined || state === "accepted";
    const due = await this.#parts.store.redeliver(partnerId, ids, to, { redelivery, ofAccepted });
    this.#parts.onDue(partnerId);
    return [...due.values()];
  }

  async #locate(id: string, partnerId?: PartnerId): Promise<NotificationStatus | undefined> {
    const known = readId<"notification">(id);
    const key = known && (await this.#parts.store.locate(known, partnerId));
    return key && this.#status(key);
  }

  async #detail(status: NotificationStatus): Promise<NotificationDetail> {
    const { store } = this.#parts;
    const [attempts, subjects, schedule] = await Promise.all([
      store.attempts(status, attemptRowsMax),
      store.subjects([status]),
      this.#schedule(status),
    ]);
    return {
      ...summaryOf(status),
      callBackUrl: status.callBackUrl,
      subject: subjects.get(status.id) ?? unknownSubject,
      schedule,
      attempts: attempts.map(attemptView),
    };
  }

  /** Null where nothing is sent before a person acts. */
  async #schedule({ partnerId, waiting, schedule }: NotificationStatus): Promise<NotificationDetail["schedule"]> {
    const partner = schedule === null ? undefined : await this.#parts.findPartner(partnerId);
    if (schedule === null || waiting === null || waiting.untilMs === null || partner === undefined) return null;
    const endMs = scheduleEndMs(partner, schedule.startMs);
    const next = { atMs: waiting.untilMs, stepsMade: schedule.stepsMade, endMs };
    return {
      beganAt: isoTime(schedule.startMs),
      attempts: comingAttemptsMs(partner.settings.retry, next).map(isoTime),
      endsAt: isoTime(endMs),
    };
  }

  async #status(key: NotificationKey): Promise<NotificationStatus | undefined> {
    const [status] = await this.#parts.store.statuses([key]);
    return status;
  }

  async #summary(key: NotificationKey): Promise<NotificationSummary> {
    const status = await this.#status(key);
    if (status === undefined) throw new ServiceError("not_found");
    return summaryOf(status);
  }
}

/** A number of keys of a walk, and the matching statuses. */
interface Step {
  readonly statuses: readonly NotificationStatus[];
  readonly lastId: NotificationId | null;
  readonly rows: number;
}

/** A state changes between the read of the keys and of the statuses, and a look-up reads keys in every state. */
function isIn(filter: NotificationFilter, { state, lastReason }: NotificationStatus): boolean {
  const isFor = lastReason === null ? undefined : reasonsOf(filter)?.includes(lastReason);
  return (filter.state === undefined || filter.state === state) && (filter.reason === undefined || isFor === true);
}

function reasonsOf({ reason }: NotificationFilter): readonly string[] | undefined {
  return typeof reason === "string" ? [reason] : reason;
}

const contentFields = [
  ...["command", "tid", "mid", "refId", "approveCode", "billId", "lastFour", "contains"],
  ...["merchantTransId", "beginning", "result", "amountFrom", "amountTo"],
] as readonly (keyof SubjectMatch)[];

function matchesContent(match: SubjectMatch): boolean {
  return contentFields.some((name) => match[name] !== undefined);
}

interface BrokenRule extends Omit<FieldProblem, "message"> {
  /** Continues a sentence that begins with the field's name. */
  readonly rule: string;
}

/** Returns everything that is wrong with the filter of a redelivery. */
export function redeliveryProblems(filter: RedeliveryFilter): BrokenRule[] {
  const problems: BrokenRule[] = [];
  if (filter.state === "accepted" && filter.from === undefined && filter.ids === undefined) {
    const rule = "is required: accepted notifications are sent again only from a given time on";
    problems.push({ field: "filter.from", code: "missing_field", rule });
  }
  if (filter.ids !== undefined) {
    const others = (["from", "to", "reason"] as const).filter((name) => filter[name] !== undefined);
    const rule = "is not allowed beside filter.ids, which name the notifications";
    return others.map((name) => ({ field: `filter.${name}`, code: "invalid_value", rule }));
  }
  if (filter.state !== undefined && filter.state !== "parked" && filter.reason !== undefined) {
    const rule = "is not allowed here: only parked notifications have a reason";
    problems.push({ field: "filter.reason", code: "invalid_value", rule });
  }
  return problems;
}

function timeMs(field: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const atMs = Date.parse(text);
  if (atMs >= 0 && atMs < 2 ** 48) return atMs;
  const message = `${field} must be a time since 1970, as ISO 8601.`;
  throw badFields([{ field, code: "invalid_value", message }]);
}

/** The next id in order: a walk continues after the last one seen. */
function following(id: NotificationId): string {
  const next = (BigInt(`0x${id.replaceAll("-", "")}`) + 1n).toString(16).padStart(32, "0");
  return [next.slice(0, 8), next.slice(8, 12), next.slice(12, 16), next.slice(16, 20), next.slice(20)].join("-");
}
