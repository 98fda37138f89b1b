import type { NotificationDetail } from "../notifications/view.ts";

type Attempt = NotificationDetail["attempts"][number];

/**
 * Shown to a partner in place of the operator's details: those contain addresses from the operator's name servers and
 * hosts file, and so would map a network for anyone who chooses callback URLs.
 */
const told: Readonly<Partial<Record<NonNullable<Attempt["reason"]>, string>>> = {
  address_refused: "The host's address is not among your callbackAddresses, or is one that is never called.",
  dns: "The host's name could not be resolved.",
  connect: "There was no connection to the host.",
  connect_timeout: "There was no connection to the host in time.",
  internal: "The attempt failed on our side.",
};

/**
 * A notification for its partner: with the reason of each failure, and without addresses that the operator looked up.
 */
export function asItsPartnerSees(detail: NotificationDetail): NotificationDetail {
  return { ...detail, attempts: detail.attempts.map(withoutAddresses) };
}

function withoutAddresses(attempt: Attempt): Attempt {
  const words = attempt.reason === null ? undefined : told[attempt.reason];
  return { ...attempt, address: null, detail: words ?? attempt.detail };
}
