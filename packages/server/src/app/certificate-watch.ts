import type { EventKind, EventSink } from "../events.ts";
import type { KeyId, PartnerId } from "../ids.ts";
import { endsOfValidity } from "../partners/callback-tls.ts";

/** A certificate that ends sooner is reported: its partner's deliveries are about to fail. */
const aheadDays = 14;
const dayMs = 86_400_000;

export interface EndingCertificate {
  readonly partnerId: PartnerId;
  readonly keyId: KeyId;
  readonly endsAt: Date;
}

/** The certificates as they are stored. Each query leaves out those reported within a day. */
export interface CertificateStore {
  endingCertificates(withinDays: number): Promise<readonly EndingCertificate[]>;
  callbackCas(): Promise<readonly { readonly partnerId: PartnerId; readonly pem: string }[]>;
}

export interface WatchedCertificates {
  readonly store: CertificateStore;
  /** The PEM certificates of PAYBELL_CALLBACK_CA_FILE. */
  readonly serviceCas: readonly string[];
  /** Whether the service itself had an event of this kind. */
  wasSentSince(kind: EventKind, sinceMs: number): Promise<boolean>;
  readonly events: EventSink;
}

/**
 * Reports our client certificates and the authorities, each partner's and the service's, that end soon, once a day. The
 * transport checks the certificates of partners' servers.
 */
export async function watchCertificates(watched: WatchedCertificates, nowMs: number): Promise<void> {
  const { store, events, serviceCas } = watched;
  for (const { partnerId, keyId, endsAt } of await store.endingCertificates(aheadDays)) {
    const detail = { certificate: "ours", endsAt: endsAt.toISOString() };
    events.record({ kind: "certificate_ending", partnerId, subjectId: keyId, detail });
  }
  for (const { partnerId, pem } of await store.callbackCas()) {
    const endsAt = firstEnding(pem, nowMs);
    if (endsAt === undefined) continue;
    const detail = { certificate: "callbackCa", endsAt: endsAt.toISOString() };
    events.record({ kind: "certificate_ending", partnerId, subjectId: null, detail });
  }
  const endsAt = firstEnding(serviceCas.join("\n"), nowMs);
  if (endsAt === undefined || (await watched.wasSentSince("certificate_ending", nowMs - dayMs))) return;
  const detail = { certificate: "PAYBELL_CALLBACK_CA_FILE", endsAt: endsAt.toISOString() };
  events.record({ kind: "certificate_ending", partnerId: null, subjectId: null, detail });
}

/** The first end among the certificates that end soon. One that has ended may stay beside its successor. */
function firstEnding(pem: string, nowMs: number): Date | undefined {
  const [first] = endsOfValidity(pem)
    .filter((end) => end.getTime() > nowMs && end.getTime() - nowMs < aheadDays * dayMs)
    .sort((a, b) => a.getTime() - b.getTime());
  return first;
}
