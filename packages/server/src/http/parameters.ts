import { z } from "zod";
import { ServiceError } from "../errors.ts";
import { type Id, isUuid, type PartnerId, readId } from "../ids.ts";
import { described } from "../input/descriptions.ts";

/** A partner's id in a query or a body. */
export const partnerIdText = z.string().refine(isUuid, {
  message: "is not a partner's id",
  params: { code: "unknown_partner" },
});

/** The partner of a {@link partnerIdText}, as a part of a search. */
export function ofPartner(text: string | undefined): { partnerId?: PartnerId } {
  const partnerId = text === undefined ? undefined : readId<"partner">(text);
  return partnerId === undefined ? {} : { partnerId };
}

/** The partner of a path. */
export const partnerParams = z.object({ id: described(z.string(), "The partner's id") });

/** @throws ServiceError `not_found`, also for a text that is not an id */
export function requireId<Kind extends string>(text: string, what: string): Id<Kind> {
  return readId<Kind>(text) ?? noSuch(what);
}

/** @throws ServiceError `not_found` */
export function noSuch(what: string): never {
  throw new ServiceError("not_found", `There is no such ${what}.`);
}

/** @throws ServiceError `not_found` */
export function requirePartnerId(text: string): PartnerId {
  return requireId<"partner">(text, "partner");
}

/** @throws ServiceError `not_found` */
export async function requirePartner<Found>(
  from: { find(id: PartnerId): Promise<Found | undefined> },
  text: string,
): Promise<Found> {
  return (await from.find(requirePartnerId(text))) ?? noSuch("partner");
}

export const limit = described(z.coerce.number().int().min(1).max(500).default(100), "Items per page, at most 500");

export const pageQuery = z.strictObject({
  after: described(z.string().max(64), "`next` of the previous page").optional(),
  limit,
});

export const moment = described(
  z.iso.datetime({ offset: true }).refine((text) => !(Date.parse(text) < 0), { message: "must be a time since 1970" }),
  "ISO 8601 with a zone",
);

/** In the body of what two admins do together. */
export const confirmedProposal = described(
  z.uuid(),
  "Where two admins are needed: the proposal of another admin which this confirms. The rest is as it was proposed",
).optional();
