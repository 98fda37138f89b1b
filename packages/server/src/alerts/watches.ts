import type { Acquirers } from "../acquirer/acquirer.ts";
import { settingsName } from "../acquirer/registered/registry.ts";
import type { KeyId, PartnerId } from "../ids.ts";
import type { AuditStore } from "../operators/audit.ts";
import { endsOfValidity } from "../partners/settings/callback-rules.ts";
import type { NewEvent } from "../telemetry/events.ts";
import type { Log } from "../telemetry/log.ts";
import type { Alerts } from "./alerts.ts";

/** Each watch looks at one condition when it is called, and records an event for the operator. */
type Recording = Pick<Alerts, "record">;
/** For a condition that every instance sees: one of them records it, and again after a while. */
type RecordingOnce = Pick<Alerts, "recordOnce">;

const minuteMs = 60_000;
const hourMs = 3_600_000;
const dayMs = 86_400_000;

export function ofService(kind: NewEvent["kind"], detail: NewEvent["detail"]): NewEvent {
  return { kind, partnerId: null, subjectId: null, detail };
}

/** Alerts, once an hour, while the oldest pending notification is older than configured. */
export async function watchBacklog(
  { count, oldestMs }: { readonly count: number; readonly oldestMs: number | undefined },
  alertAfterS: number,
  alerts: RecordingOnce,
): Promise<void> {
  if (oldestMs === undefined) return;
  const oldestSeconds = Math.floor((Date.now() - oldestMs) / 1_000);
  if (oldestSeconds >= alertAfterS)
    await alerts.recordOnce(ofService("oldest_pending", { oldestSeconds, count }), hourMs);
}

/** Twice the time of a take-over after a crash. */
const unownedAlertMs = 15_000;

/**
 * Alerts if a shard has no owner for 15 s: nobody sends for its partners. While shards change hands, now one and now
 * another has none for a moment.
 */
export class ShardWatch {
  readonly #alerts: RecordingOnce;
  readonly #nowMs: () => number;
  /** Since when each of them has had no owner at every look. */
  #since: ReadonlyMap<number, number> = new Map();

  constructor(alerts: RecordingOnce, nowMs = () => performance.now()) {
    this.#alerts = alerts;
    this.#nowMs = nowMs;
  }

  /** @param unowned the shards that no living worker owns */
  async check(unowned: readonly number[]): Promise<void> {
    const nowMs = this.#nowMs();
    this.#since = new Map(unowned.map((shard) => [shard, this.#since.get(shard) ?? nowMs]));
    const forMs = nowMs - Math.min(nowMs, ...this.#since.values());
    if (forMs < unownedAlertMs) return;
    const detail = { shards: unowned.length, seconds: Math.floor(forMs / 1_000) };
    await this.#alerts.recordOnce(ofService("shards_unowned", detail), 10 * minuteMs);
  }
}

interface WatchedAcquirer {
  /** The health reported last; initially good. */
  reported: boolean;
  seen: boolean;
}

/**
 * Alerts when no host of an acquirer can be asked any more, and when one can again. It reports a state seen twice: a
 * connection that is restored at once needs no alert.
 */
export class AcquirerWatch {
  readonly #acquirers: Acquirers;
  readonly #alerts: Recording;
  readonly #watched = new Map<string, WatchedAcquirer>();

  constructor(acquirers: Acquirers, alerts: Recording) {
    this.#acquirers = acquirers;
    this.#alerts = alerts;
  }

  async check(): Promise<void> {
    const names = this.#acquirers.names();
    for (const gone of [...this.#watched.keys()].filter((name) => !names.includes(name))) this.#watched.delete(gone);
    for (const name of names) await this.#checkOne(name);
  }

  async #checkOne(name: string): Promise<void> {
    const health = this.#acquirers.of(name).health?.();
    if (health === undefined) return;
    const { ok, detail } = health;
    const { reported, seen } = this.#watched.get(name) ?? { reported: true, seen: true };
    const isNews = ok === seen && ok !== reported;
    this.#watched.set(name, { reported: isNews ? ok : reported, seen: ok });
    if (!isNews) return;
    const kind = ok ? "acquirer_up" : "acquirer_down";
    await this.#alerts.record(ofService(kind, { acquirer: name || settingsName, detail }));
  }
}

/** A certificate that ends sooner is reported: its partner's deliveries are about to fail. */
const certificateAheadDays = 14;

/** The certificates as they are stored. Each query leaves out those reported within a day. */
export interface CertificateStore {
  endingCertificates(
    withinDays: number,
  ): Promise<readonly { readonly partnerId: PartnerId; readonly keyId: KeyId; readonly endsAt: Date }[]>;
  callbackCas(): Promise<readonly { readonly partnerId: PartnerId; readonly pem: string }[]>;
}

/**
 * Reports our client certificates and the authorities, each partner's and the service's, that end soon, once a day. The
 * transport checks the certificates of partners' servers.
 *
 * @param serviceCas the PEM certificates of PAYBELL_CALLBACK_CA_FILE
 */
export async function watchCertificates(
  store: CertificateStore,
  serviceCas: readonly string[],
  alerts: Recording & RecordingOnce,
): Promise<void> {
  const kind = "certificate_ending";
  for (const { partnerId, keyId, endsAt } of await store.endingCertificates(certificateAheadDays)) {
    const detail = { certificate: "ours", endsAt: endsAt.toISOString() };
    await alerts.record({ kind, partnerId, subjectId: keyId, detail });
  }
  for (const { partnerId, pem } of await store.callbackCas()) {
    const endsAt = firstEnding(pem);
    if (endsAt === undefined) continue;
    const detail = { certificate: "callbackCa", endsAt: endsAt.toISOString() };
    await alerts.record({ kind, partnerId, subjectId: null, detail });
  }
  const endsAt = firstEnding(serviceCas.join("\n"))?.toISOString();
  if (endsAt === undefined) return;
  await alerts.recordOnce(ofService(kind, { certificate: "PAYBELL_CALLBACK_CA_FILE", endsAt }), dayMs);
}

/** The first end among the certificates that end soon. One that has ended may stay beside its successor. */
function firstEnding(pem: string): Date | undefined {
  const nowMs = Date.now();
  const [first] = endsOfValidity(pem)
    .filter((end) => end.getTime() > nowMs && end.getTime() - nowMs < certificateAheadDays * dayMs)
    .sort((a, b) => a.getTime() - b.getTime());
  return first;
}

/** Somewhat shorter than an hour: timers are not exact. */
const auditHeadEveryMs = 3_500_000;

/**
 * Sends the number and hash of the last entry out of the database, to the log and the alert channels. They show later
 * whether entries were cut off at the end.
 *
 * @param isLast the instance stops: it says so whatever others have sent
 */
export async function reportAuditHead(
  audit: Pick<AuditStore, "head">,
  alerts: Recording & RecordingOnce,
  log: Pick<Log, "info">,
  isLast = false,
): Promise<void> {
  const head = await audit.head();
  if (head === undefined) return;
  const expect = `${head.seq}:${head.hash}`;
  log.info({ expect }, "the audit's last entry");
  const event = ofService("audit_head", { expect });
  await (isLast ? alerts.record(event) : alerts.recordOnce(event, auditHeadEveryMs));
}
