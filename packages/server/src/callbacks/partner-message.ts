import type { TroubleView } from "../notifications/trouble.ts";
import type { PartnerMessageKind } from "../partners/messages.ts";
import type { Partner } from "../partners/partner.ts";

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
    const text = ["Your server accepts its payment notifications again. Nothing waits.", "", signature];
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
