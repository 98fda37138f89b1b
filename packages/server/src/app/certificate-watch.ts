import type { EventSink } from "../events.ts";
import type { KeyId, PartnerId } from "../ids.ts";

/** A certificate that ends sooner is told of: its partner's deliveries are about to fail. */
const aheadDays = 14;

export interface EndingCertificate {
  readonly partnerId: PartnerId;
  readonly keyId: KeyId;
  readonly endsAt: Date;
}

/** Tells once a day of the client certificates that end soon. Those of partners' servers are seen by the transport. */
export async function watchCertificates(
  store: { endingCertificates(withinDays: number): Promise<readonly EndingCertificate[]> },
  events: EventSink,
): Promise<void> {
  for (const { partnerId, keyId, endsAt } of await store.endingCertificates(aheadDays)) {
    const detail = { certificate: "ours", endsAt: endsAt.toISOString() };
    events.record({ kind: "certificate_ending", partnerId, subjectId: keyId, detail });
  }
}
