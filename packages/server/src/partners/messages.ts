import type { NotificationId, PartnerId } from "../ids.ts";

/** Deliveries fail; parking begins soon; everything is received again. */
export type PartnerMessageKind = "failing" | "parking" | "recovered";

export type PartnerChannel = "mail" | "webhook";

/** A partner that was told of trouble on a channel, and the oldest notification that failed, as it was found last. */
export interface InformedPartner {
  readonly partnerId: PartnerId;
  readonly channel: PartnerChannel;
  readonly notificationId: NotificationId | null;
}

/** The messages that a partner got in its present trouble. Each is sent by one instance, once for each channel. */
export interface PartnerMessageStore {
  /**
   * @returns the message's id, the same for each try; undefined while another instance sends it, and once it was sent.
   * A try that is not reported as sent is over after `leaseS`
   */
  claim(
    partnerId: PartnerId,
    kind: PartnerMessageKind,
    channel: PartnerChannel,
    notificationId: NotificationId | null,
    leaseS: number,
  ): Promise<string | undefined>;
  sent(partnerId: PartnerId, kind: PartnerMessageKind, channel: PartnerChannel): Promise<void>;
  /** The partner's oldest notification that failed, now. */
  found(partnerId: PartnerId, notificationId: NotificationId): Promise<void>;
  informed(): Promise<readonly InformedPartner[]>;
  /** The trouble is over. */
  forget(partnerId: PartnerId, channel: PartnerChannel): Promise<void>;
}
