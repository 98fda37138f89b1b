import { setTimeout as pause } from "node:timers/promises";
import { headerNames, webhookSignature } from "@paybell/contract";
import { post, postDefaults } from "@paybell/partner/certify";
import type { Clock } from "../clock.ts";
import { messageOf } from "../errors.ts";
import { idTimeMs, type NotificationId, type PartnerId } from "../ids.ts";
import type { NotificationState } from "../notification.ts";
import type { TroubleView } from "../notifications/trouble.ts";
import type { Partner } from "../partners/partner.ts";
import type { InformedPartner, PartnerChannel, PartnerMessageKind, PartnerMessageStore } from "../partners/store.ts";
import type { EventSink } from "../telemetry/events.ts";
import type { ConnectToEndpoint } from "./endpoint-connection.ts";

export interface PartnerMail {
  readonly to: readonly string[];
  readonly subject: string;
  readonly text: string;
  readonly messageId: string;
}

export interface PartnerMessagesParts {
  readonly troubles: {
    all(): Promise<readonly TroubleView[]>;
    of(partnerId: PartnerId): Promise<TroubleView | null>;
  };
  readonly stateOf: (partnerId: PartnerId, id: NotificationId) => Promise<NotificationState | undefined>;
  /** Undefined if there is none, or its keys cannot be read. */
  readonly findPartner: (id: PartnerId) => Promise<Partner | undefined>;
  readonly store: PartnerMessageStore;
  readonly connect: ConnectToEndpoint;
  /** Sends a mail. @returns why it was not accepted; undefined if it was */
  readonly mail: (mail: PartnerMail, signal: AbortSignal) => Promise<string | undefined>;
  readonly events: EventSink;
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: { warn(fields: object, message: string): void };
}

const pollMs = 10_000;
const sendMs = 15_000;
/** Longer than a message takes. One that was not accepted is tried again then. */
const leaseS = 300;
/** After its first try. A contact that accepts nothing for this long does not exist, or is not looked after. */
const giveUpAfterMs = 24 * 3_600_000;
/** Trouble that is younger is not reported, as it may pass by itself; of a short schedule, its first quarter. */
const reportedAfterMs = 5 * 60_000;
/** Parking is announced this long before, or in the last quarter of a shorter schedule. */
const parkingNoticeMs = 12 * 3_600_000;

/** Writes to partners when their deliveries fail, before parking begins, and when everything is received again. */
export class PartnerMessages {
  readonly #parts: PartnerMessagesParts;
  readonly #stopping = new AbortController();
  #loop: Promise<void> | undefined;

  constructor(parts: PartnerMessagesParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  async sendDue(): Promise<void> {
    const { troubles, store, findPartner } = this.#parts;
    for (const trouble of await troubles.all()) {
      const partner = await findPartner(trouble.partnerId);
      const channels = partner === undefined ? [] : channelsOf(partner);
      if (partner === undefined || channels.length === 0) continue;
      await store.found(partner.id, trouble.notificationId);
      for (const kind of this.#dueOf(trouble, partner)) {
        await Promise.all(channels.map((channel) => this.#send(partner, kind, channel, trouble)));
      }
    }
    for (const informed of await store.informed()) await this.#end(informed);
  }

  /** Tells the end of trouble. What was parked was not received: nothing is said about it a second time. */
  async #end(told: InformedPartner): Promise<void> {
    const { partnerId, channel, notificationId, isInformed } = told;
    const { troubles, stateOf, findPartner, store } = this.#parts;
    if ((await troubles.of(partnerId)) !== null) return;
    const state = notificationId === null ? undefined : await stateOf(partnerId, notificationId);
    if (state === "pending") return;
    const partner = await findPartner(partnerId);
    // An instance that can read its keys tells it; of a partner that was deleted no message is left.
    if (partner === undefined) return;
    const isReported = isInformed && state === "accepted" && channelsOf(partner).includes(channel);
    if (!isReported || (await this.#send(partner, "recovered", channel, null))) await store.forget(told);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.sendDue().catch((error: unknown) => {
        this.#parts.log.warn({ err: error }, "partners could not be written to");
      });
      await pause(pollMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** A pause is the operator's: nothing of it is the partner's to mend. */
  #dueOf({ because, since, parkingAt }: TroubleView, { settings }: Partner): readonly PartnerMessageKind[] {
    if (because === "paused" || because === "disabled" || since === null) return [];
    const nowMs = this.#parts.clock.nowMs();
    const quarterMs = settings.retry.reduce((sumS, stepS) => sumS + stepS, 0) * 250;
    if (nowMs - Date.parse(since) < Math.min(reportedAfterMs, quarterMs)) return [];
    const endsSoon = parkingAt !== null && Date.parse(parkingAt) - nowMs <= Math.min(parkingNoticeMs, quarterMs);
    return endsSoon ? ["failing", "parking"] : ["failing"];
  }

  /** @returns whether it was sent, or given up, by this instance, now */
  async #send(
    partner: Partner,
    kind: PartnerMessageKind,
    channel: PartnerChannel,
    trouble: TroubleView | null,
  ): Promise<boolean> {
    const { store, log, events, clock } = this.#parts;
    if (this.#stopping.signal.aborted) return false;
    // Its record is that the trouble is forgotten. Another one, without that, would keep the next trouble untold.
    const isEnd = kind === "recovered";
    const id = await store.claim(partner.id, kind, channel, trouble?.notificationId ?? null, leaseS);
    if (id === undefined) return false;
    const message = { id, kind, partner, trouble };
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(sendMs)]);
    const sending = channel === "mail" ? this.#mail(message, signal) : this.#post(message, signal);
    const problem = await sending.catch(messageOf);
    if (problem !== undefined) {
      log.warn({ partnerId: partner.id, kind, channel, problem }, "a partner could not be written to");
      // It was made at the first try.
      if (clock.nowMs() - idTimeMs(id) < giveUpAfterMs || this.#stopping.signal.aborted) return false;
      if (!isEnd) await store.giveUp(partner.id, kind, channel);
      const detail = { kind, channel, detail: problem };
      events.record({ kind: "partner_message_failed", partnerId: partner.id, subjectId: null, detail });
      return true;
    }
    if (!isEnd) await store.sent(partner.id, kind, channel);
    return true;
  }

  #mail(message: PartnerMessage, signal: AbortSignal): Promise<string | undefined> {
    const { contactMails: to } = message.partner.settings;
    return this.#parts.mail({ to, messageId: `<${message.id}@paybell>`, ...messageText(message) }, signal);
  }

  /** By the rules of every delivery, and signed like one: with the partner's webhook secret. */
  async #post({ id, kind, partner, trouble }: PartnerMessage, signal: AbortSignal): Promise<string | undefined> {
    const { connect, clock } = this.#parts;
    const { partnerName: _, ...about } = trouble ?? { partnerId: partner.id, partnerName: "" };
    const body = JSON.stringify({ id, kind, ...about });
    const timestampS = Math.floor(clock.nowMs() / 1_000);
    const signatures = partner.keys.webhook.map(({ key }) => webhookSignature(id, timestampS, body, key));
    const headers = {
      "content-type": "application/json",
      [headerNames.id]: id,
      [headerNames.timestamp]: String(timestampS),
      [headerNames.signature]: signatures.join(" "),
    };
    const options = { ...postDefaults, signal, connect: async (url: URL) => (await connect(partner, url)).socket };
    const url = new URL(String(partner.settings.contactUrl));
    const answer = await post(url, { method: "POST", headers, body }, options);
    if ("failure" in answer) return answer.detail;
    return answer.status >= 200 && answer.status < 300 ? undefined : `status ${answer.status}`;
  }
}

function channelsOf({ settings: { contactMails, contactUrl } }: Partner): readonly PartnerChannel[] {
  return [...(contactMails.length > 0 ? ["mail" as const] : []), ...(contactUrl === null ? [] : ["webhook" as const])];
}

export interface PartnerMessage {
  /** The same for each try, so that a duplicate can be recognized. */
  readonly id: string;
  readonly kind: PartnerMessageKind;
  readonly partner: Partner;
  /** Null once it is over. */
  readonly trouble: TroubleView | null;
}

/** A message as a mail. Times are UTC: a mail has no viewer's zone. */
export function messageText({ kind, partner, trouble }: PartnerMessage): { subject: string; text: string } {
  const { name } = partner.settings;
  if (kind === "recovered" || trouble === null) {
    const text = [
      "Your server accepts its payment notifications again. Nothing waits.",
      "If some were parked before, they are kept until you have them sent again: the console shows them.",
      "",
      signature,
    ];
    return { subject: `[Paybell] ${name}: notifications are received again`, text: text.join("\n") };
  }
  const count = trouble.waiting >= 1_000 ? "1,000 or more" : String(trouble.waiting);
  const answer =
    trouble.httpStatus === null
      ? `they cannot be delivered (${trouble.reason ?? "not tried"})`
      : `your server answered ${trouble.httpStatus}`;
  const parking = trouble.parkingAt === null ? undefined : `Parking begins: ${utc(trouble.parkingAt)}`;
  const text = [
    `${count} payment ${trouble.waiting === 1 ? "notification waits" : "notifications wait"}, because ${answer}.`,
    "",
    ...(trouble.since === null ? [] : [`Since: ${utc(trouble.since)}`]),
    ...(trouble.nextAttemptAt === null ? [] : [`Next try: ${utc(trouble.nextAttemptAt)}`]),
    ...(parking === undefined ? [] : [parking]),
    `The oldest that failed: ${trouble.notificationId}`,
    "",
    "Nothing is lost: what is parked is kept, and you can have it sent again or pull it.",
    "Sign in to the console with your API key to see why, and to send what waits now.",
    "",
    signature,
  ];
  const what = kind === "parking" ? "notifications are parked soon" : "notifications are not received";
  return { subject: `[Paybell] ${name}: ${what}`, text: text.join("\n") };
}

const signature = "You get this because your operator registered this address as your contact.";

function utc(iso: string): string {
  return `${iso.slice(0, 19).replace("T", " ")} UTC`;
}
