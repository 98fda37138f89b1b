import type { NotificationDetail, NotificationSummary } from "../../notifications/view.ts";

type Attempt = NotificationDetail["attempts"][number];

/**
 * One reason for names that do not resolve and for those whose address is refused: otherwise a partner that chooses
 * callback URLs learns which names the operator's name servers know.
 */
const oneReason: Readonly<Record<string, string>> = { dns: "address_refused" };

/**
 * Shown to a partner in place of the operator's details: those contain addresses from the operator's name servers and
 * hosts file, and so would map a network for anyone who chooses callback URLs.
 */
const told: Readonly<Record<string, string>> = {
  address_refused: "The host's name leads to no address among your callbackAddresses that may be called.",
  connect: "There was no connection to the host.",
  connect_timeout: "There was no connection to the host in time.",
  egress: "The service's own way out of its network failed.",
  internal: "The attempt failed on our side.",
};

/** The reason of a failure in a partner's answers. */
export function reasonForPartner<Reason extends string | null>(reason: Reason): Reason {
  // The reasons are open to callers: they compare words.
  return (reason === null ? null : (oneReason[reason] ?? reason)) as Reason;
}

/** The reasons that a partner means by the one that it was shown. */
export function reasonsOfPartner(reason: string | undefined): readonly string[] | undefined {
  if (reason === undefined) return undefined;
  return [
    ...(oneReason[reason] === undefined ? [reason] : []),
    ...Object.keys(oneReason).filter((it) => oneReason[it] === reason),
  ];
}

export function summaryForPartner<Summary extends NotificationSummary>(summary: Summary): Summary {
  const { waiting, lastReason } = summary;
  return {
    ...summary,
    lastReason: reasonForPartner(lastReason),
    waiting: waiting && { ...waiting, reason: reasonForPartner(waiting.reason) },
  };
}

/** A notification for its partner: without addresses that the operator looked up. */
export function asItsPartnerSees(detail: NotificationDetail): NotificationDetail {
  return { ...summaryForPartner(detail), attempts: detail.attempts.map(withoutAddresses) };
}

function withoutAddresses(attempt: Attempt): Attempt {
  const reason = reasonForPartner(attempt.reason);
  return { ...attempt, reason, address: null, detail: (reason && told[reason]) ?? attempt.detail };
}
