import type { EventSink } from "../events.ts";
import type { KeyId, PartnerId } from "../ids.ts";

/** A certificate that ends sooner is reported: its partner's deliveries are about to fail. */
const aheadDays = 14;

export interface EndingCertificate {
  readonly partnerId: PartnerId;
  readonly keyId: KeyId;
  readonly endsAt: Date;
}

/** Reports client certificates that end soon, once a day. The transport checks those of partners' servers. */
export async function watchCertificates(
  store: { endingCertificates(withinDays: number): Promise<readonly EndingCertificate[]> },
  events: EventSink,
): Promise<void> {
  for (const { partnerId, keyId, endsAt } of await store.endingCertificates(aheadDays)) {
    const detail = { certificate: "ours", endsAt: endsAt.toISOString() };
    events.record({ kind: "certificate_ending", partnerId, subjectId: keyId, detail });
  }
}
