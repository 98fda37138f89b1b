import { scheduleEndMs } from "../delivery/attempt/schedule.ts";
import type { NotificationId, PartnerId } from "../ids.ts";
import type { Partner } from "../partners/partner.ts";
import type { NotificationStatus, NotificationStore, ParkedReason, WaitingFor } from "./store.ts";
import { isoOrNull } from "./view.ts";

/** A partner with pending notifications that were tried in vain, or that nothing can be sent to now. */
export interface StoredTrouble {
  readonly partnerId: PartnerId;
  /** Its oldest pending one that failed; the oldest if none was tried. */
  readonly id: NotificationId;
  /** Pending notifications, up to 1,000. */
  readonly waiting: number;
  /** The earliest next attempt of those that failed; null if none was tried. */
  readonly dueMs: number | null;
  /** The start of the schedule that began first. */
  readonly scheduleStartMs: number;
  /** The first attempt at `id` in its schedule. */
  readonly sinceMs: number | null;
  /** When the first of its circuits that are tripped now was. */
  readonly openedMs: number | null;
}

/**
 * A partner with parked notifications: none of them is sent again before a person acts. It is in trouble until it has
 * accepted something since the last was parked; from then on they are a task of that person's, and no trouble.
 */
export interface StoredParked {
  readonly partnerId: PartnerId;
  /** Its newest parked one. */
  readonly id: NotificationId;
  /** Up to 1,000. */
  readonly parked: number;
  /** When its newest attempt that was accepted since then began; null: it is in trouble. */
  readonly acceptedMs: number | null;
}

export interface TroublesParts {
  readonly store: {
    all(partnersMax: number): Promise<readonly StoredTrouble[]>;
    of(partnerId: PartnerId): Promise<StoredTrouble | undefined>;
    parked(partnersMax: number): Promise<readonly StoredParked[]>;
    parkedOf(partnerId: PartnerId): Promise<StoredParked | undefined>;
  };
  readonly statuses: NotificationStore["statuses"];
  /** Undefined if it cannot be read. */
  readonly findPartner: (id: PartnerId) => Promise<Partner | undefined>;
}

const shownMax = 50;

/** Finds the partners that do not receive their notifications now, and why. It keeps nothing about them. */
export class Troubles {
  readonly #parts: TroublesParts;

  constructor(parts: TroublesParts) {
    this.#parts = parts;
  }

  /** The partner whose notifications are parked first is at the head. */
  async all(partnersMax = shownMax): Promise<readonly TroubleView[]> {
    return this.#views(await this.#parts.store.all(partnersMax));
  }

  async of(partnerId: PartnerId): Promise<TroubleView | null> {
    const found = await this.#parts.store.of(partnerId);
    const [view] = found === undefined ? [] : await this.#views([found]);
    return view ?? null;
  }

  /** The partners with parked notifications, those in trouble first. */
  async parked(partnersMax = shownMax) {
    return this.#parkedViews(await this.#parts.store.parked(partnersMax));
  }

  async parkedOf(partnerId: PartnerId) {
    const found = await this.#parts.store.parkedOf(partnerId);
    const [view] = found === undefined ? [] : await this.#parkedViews([found]);
    return view ?? null;
  }

  async #parkedViews(found: readonly StoredParked[]) {
    const byId = new Map((await this.#parts.statuses(found)).map((status) => [status.id, status]));
    return found.flatMap(({ partnerId, id, parked, acceptedMs }) => {
      const status = byId.get(id);
      // It was sent again since.
      if (status?.state !== "parked") return [];
      const { partnerName, lastReason: reason, lastHttpStatus: httpStatus, outcomeAtMs } = status;
      const [since, acceptedAt] = [isoOrNull(outcomeAtMs), isoOrNull(acceptedMs)];
      return [{ partnerId, partnerName, notificationId: id, reason, httpStatus, since, parked, acceptedAt }];
    });
  }

  async #views(found: readonly StoredTrouble[]): Promise<readonly TroubleView[]> {
    const { statuses, findPartner } = this.#parts;
    const [known, partners] = await Promise.all([
      statuses(found),
      Promise.all(found.map(({ partnerId }) => findPartner(partnerId))),
    ]);
    const byId = new Map(known.map((status) => [status.id, status]));
    return found.flatMap((one, at) => {
      const status = byId.get(one.id);
      // It was delivered or parked since.
      if (status?.waiting == null) return [];
      return [viewOf(one, status, status.waiting, partners[at])];
    });
  }
}

/** The reason for which a partner's notifications wait. Times are ISO 8601. */
export type TroubleView = ReturnType<typeof viewOf>;

function viewOf(found: StoredTrouble, status: NotificationStatus, waiting: WaitingFor, partner: Partner | undefined) {
  const { because } = waiting;
  const isStopped = because === "paused" || because === "disabled";
  const ofEndpoint = "target" in waiting ? waiting.reason : null;
  // The endpoint's own failure may have been at another notification.
  const isItsOwn = ofEndpoint === null || ofEndpoint === status.lastReason;
  const sinceMs = "sinceMs" in waiting ? waiting.sinceMs : (found.sinceMs ?? found.openedMs);
  const nextMs = because === "retry" || because === "turn" ? (found.dueMs ?? waiting.untilMs) : waiting.untilMs;
  return {
    partnerId: found.partnerId,
    partnerName: status.partnerName,
    notificationId: found.id,
    because,
    reason: (ofEndpoint as ParkedReason | null) ?? status.lastReason,
    httpStatus: isItsOwn ? status.lastHttpStatus : null,
    since: isoOrNull(sinceMs),
    waiting: found.waiting,
    nextAttemptAt: isoOrNull(nextMs),
    // Nothing is sent, and so parked, while the partner's keys cannot be read.
    parkingAt: isStopped || partner === undefined ? null : isoOrNull(scheduleEndMs(partner, found.scheduleStartMs)),
  };
}
