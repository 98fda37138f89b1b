import type { NotificationDetail } from "../notifications/view.ts";

type Attempt = NotificationDetail["attempts"][number];

/**
 * What a partner is told in place of the operator's words: those quote the addresses that the operator's name servers
 * and hosts file gave, and so would map a network for whoever chooses callback URLs.
 */
const told: Readonly<Partial<Record<NonNullable<Attempt["reason"]>, string>>> = {
  address_refused: "The host's address is not among your callbackAddresses, or is one that is never called.",
  dns: "The host's name could not be resolved.",
  connect: "There was no connection to the host.",
  connect_timeout: "There was no connection to the host in time.",
  internal: "The attempt failed on our side.",
};

/** A notification as its partner sees it: the reason of each failure, and no address that the operator looked up. */
export function asItsPartnerSees(detail: NotificationDetail): NotificationDetail {
  return { ...detail, attempts: detail.attempts.map(withoutAddresses) };
}

function withoutAddresses(attempt: Attempt): Attempt {
  const words = attempt.reason === null ? undefined : told[attempt.reason];
  return { ...attempt, address: null, detail: words ?? attempt.detail };
}
