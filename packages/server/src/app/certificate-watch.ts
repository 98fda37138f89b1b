import type { EventSink } from "../events.ts";
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

/** Where what the watch looks at is stored. Each leaves out what was reported within a day. */
export interface CertificateStore {
  endingCertificates(withinDays: number): Promise<readonly EndingCertificate[]>;
  callbackCas(): Promise<readonly { readonly partnerId: PartnerId; readonly pem: string }[]>;
}

/**
 * Reports our client certificates and the partners' CAs that end soon, once a day. The transport checks the
 * certificates of partners' servers.
 */
export async function watchCertificates(store: CertificateStore, events: EventSink, nowMs: number): Promise<void> {
  for (const { partnerId, keyId, endsAt } of await store.endingCertificates(aheadDays)) {
    const detail = { certificate: "ours", endsAt: endsAt.toISOString() };
    events.record({ kind: "certificate_ending", partnerId, subjectId: keyId, detail });
  }
  for (const { partnerId, pem } of await store.callbackCas()) {
    const ending = endsOfValidity(pem).filter((end) => {
      const leftMs = end.getTime() - nowMs;
      // One that has ended may stay beside its successor.
      return leftMs > 0 && leftMs < aheadDays * dayMs;
    });
    const [first] = ending.sort((a, b) => a.getTime() - b.getTime());
    if (first === undefined) continue;
    const detail = { certificate: "callbackCa", endsAt: first.toISOString() };
    events.record({ kind: "certificate_ending", partnerId, subjectId: null, detail });
  }
}
