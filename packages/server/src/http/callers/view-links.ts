import { createHash } from "node:crypto";
import { ServiceError } from "../../errors.ts";
import { type KeyId, newId, type PartnerId } from "../../ids.ts";
import type { Partner } from "../../partners/partner.ts";
import type { HttpDependencies } from "../dependencies.ts";
import { openSealed, sealText } from "./sessions.ts";

type ViewLinksParts = Pick<HttpDependencies, "sessionKey" | "clock" | "endedSessions" | "directory">;

/** The contents of a link's token. */
interface ViewLink {
  readonly id: KeyId;
  readonly partnerId: PartnerId;
  /** The operator who made it. */
  readonly by: string;
  readonly endsAtMs: number;
}

/** A link that was opened. */
export interface PartnerView extends ViewLink {
  readonly partner: Partner;
}

export const viewMinutesMax = 60;
const prefix = "pbv_";
const purpose = "paybell_view_link";

export function isViewLink(token: string): boolean {
  return token.startsWith(prefix);
}

/**
 * Links by which an operator shows somebody a partner's pages for up to an hour: to read, not to change. A link's token
 * is encrypted and authenticated by this service. Only the console takes it, and nothing of it is stored until it is
 * revoked.
 */
export class ViewLinks {
  readonly #parts: ViewLinksParts;

  constructor(parts: ViewLinksParts) {
    this.#parts = parts;
  }

  make(partnerId: PartnerId, by: string, minutes: number): { id: KeyId; token: string; expiresAt: string } {
    const endsAtMs = this.#parts.clock.nowMs() + minutes * 60_000;
    const link: ViewLink = { id: newId<"key">(), partnerId, by, endsAtMs };
    const token = prefix + sealText(this.#parts.sessionKey, purpose, JSON.stringify(link));
    return { id: link.id, token, expiresAt: new Date(endsAtMs).toISOString() };
  }

  /**
   * Undefined for what is no link, has expired, or was revoked.
   *
   * @throws ServiceError `partner_disabled`
   */
  async open(token: string): Promise<PartnerView | undefined> {
    if (!isViewLink(token)) return undefined;
    const { sessionKey, clock, endedSessions, directory } = this.#parts;
    const text = openSealed(sessionKey, purpose, token.slice(prefix.length));
    const link = text === undefined ? undefined : (JSON.parse(text) as ViewLink);
    if (link === undefined || clock.nowMs() >= link.endsAtMs || (await endedSessions.has(markOf(link))))
      return undefined;
    const partner = await directory.find(link.partnerId);
    if (partner?.state === "disabled") throw new ServiceError("partner_disabled");
    return partner && { ...link, partner };
  }

  /** Every instance refuses it within two seconds, and what it opened. An unknown one is revoked, too. */
  async revoke(partnerId: PartnerId, id: KeyId): Promise<void> {
    const latestEndMs = this.#parts.clock.nowMs() + viewMinutesMax * 60_000;
    await this.#parts.endedSessions.add(markOf({ partnerId, id }), latestEndMs);
  }
}

function markOf({ partnerId, id }: Pick<ViewLink, "partnerId" | "id">): Buffer {
  return createHash("sha256").update(`${purpose} ${partnerId} ${id}`).digest();
}
