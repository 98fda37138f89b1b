import { ciphers, encodings, notifiedCommands } from "@paybell/contract";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { NotificationId } from "../../ids.ts";
import { component, componentOf, described } from "../../input/descriptions.ts";
import { notificationStates } from "../../notification.ts";
import { historyFormats, historyText, readDay } from "../../notifications/history-export.ts";
import type { NotificationDetail, NotificationSummary } from "../../notifications/view.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { exported, operations, type PartnerRoutes, responses, untilGone } from "../operation.ts";
import { limit, moment, noSuch, ofPartner, partnerIdText, requireId } from "../parameters.ts";
import { operator, partner, partnerReads, viewer } from "../policy.ts";

const ownOperation = operations("Notifications");
const operation = operations("Deliveries");

const time = z.iso.datetime();

export const because = described(
  z.enum(["paused", "disabled", "circuit", "gone", "order", "retry", "turn"]),
  "paused, disabled: the partner; circuit: its endpoint failed too often; gone: its URL answered 410; order: an " +
    "earlier one of its chain is on its way; retry: the schedule; turn: it is due, and waits for a free slot, " +
    "its partner's rate (maxPerSecond, maxInFlight), or a worker that owns its partner",
);

const waiting = componentOf("Waiting", "Why a pending notification was not delivered yet", {
  because,
  since: described(time.nullable(), "When the partner was paused or disabled"),
  endpointId: z.uuid().nullable(),
  target: described(z.string().nullable(), "The endpoint's origin or URL"),
  reason: described(z.string().nullable(), "Why the endpoint failed last"),
  after: described(z.uuid().nullable(), "The notification that has to be accepted or parked first"),
});

const summary = {
  id: z.uuid(),
  partnerId: z.uuid(),
  transactionId: described(z.uuid().nullable(), "null of a test notification"),
  command: z.enum(notifiedCommands),
  kind: z.enum(["card", "settlement"]),
  state: described(z.enum(notificationStates), "parked: given up for now, kept, replayable"),
  attemptsMade: z.int(),
  nextAttemptAt: described(
    time.nullable(),
    "At the earliest; null: of one that waits until a person acts, or is not pending",
  ),
  lastReason: described(z.string().nullable(), "Why the last attempt failed, in a stable word"),
  lastHttpStatus: described(z.int().nullable(), "Its status, if it failed by an answer"),
  createdAt: time,
  outcomeAt: time.nullable(),
  waiting: waiting.nullable(),
  partnerName: z.string(),
};

const attempt = z.object({
  attemptNo: described(z.int(), "From 1; it continues through redeliveries"),
  startedAt: time,
  durationMs: z.number(),
  url: z.string(),
  address: described(z.string().nullable(), "Shown to the operator; null to the partner"),
  httpStatus: z.int().nullable(),
  reason: z.string().nullable(),
  detail: described(z.string().nullable(), "A description; without looked-up addresses if the partner asks"),
  answer: described(z.string().nullable(), "The first 4 KiB of an answer that was not 2xx"),
  keyId: z.string().nullable(),
  instanceId: z.string(),
});

export const summarySchema = componentOf("Notification", "A notification and its state", summary);

const known = z.string().nullable();

const subjectSchema = componentOf(
  "NotificationSubject",
  "Values by which people recognise a notification; null if unknown",
  {
    merchantTransId: known,
    amount: described(known, "A settlement's totalAmount; null in a list where it is too large to be read"),
    currency: known,
    tid: known,
    mid: known,
    merchantName: known,
    refId: known,
    approveCode: known,
    isoResponseCode: known,
    reqId: known,
    lastFour: described(known, "Of the card number"),
  },
);

export const detailSchema = componentOf("NotificationDetail", "A notification with its attempts", {
  ...summary,
  callBackUrl: z.string().nullable(),
  subject: subjectSchema,
  schedule: described(
    z
      .object({
        beganAt: time,
        attempts: described(z.array(time), "If each of them fails; the last one is at the end"),
        endsAt: described(time, "It is parked then"),
      })
      .nullable(),
    "The retry schedule of a pending one; null: nothing is sent before a person acts",
  ),
  attempts: z.array(attempt),
});

export const pulledSchema = componentOf(
  "NotificationPage",
  "A page of everything ever created for the partner that is still kept, in commit order",
  {
    items: z.array(
      z.object({
        id: z.uuid(),
        createdAt: time,
        kind: z.enum(["card", "settlement"]),
        state: z.enum(notificationStates),
        data: described(z.string(), "The sealed IPN, as in a callback's body"),
        headers: described(z.record(z.string(), z.string()), "The headers that a callback would carry"),
      }),
    ),
    next: described(z.string(), "`after` of the next page; given at the end too, to go on from later"),
  },
);

export const searchSchema = componentOf("NotificationSearch", "Notifications, the newest first", {
  items: z.array(componentOf("ListedNotification", "With its subject", { ...summary, subject: subjectSchema })),
  next: z.string().nullable(),
});

const pullQuery = z.strictObject({
  after: described(
    z.string().max(512),
    "`next` of the previous page; `now`: only later ones; left out: from the beginning",
  ).optional(),
  limit,
  wait: described(
    z.coerce.number().int().min(1).max(30),
    "Seconds to wait while the page is empty; it is answered as soon as there is a notification",
  ).optional(),
});

const amount = z
  .string()
  .max(27)
  .refine((text) => /^\d{1,20}(?:\.\d{1,6})?$/.test(text), { message: "must be a decimal number such as 12.50" });

const searched = {
  state: z.enum(notificationStates).optional(),
  reason: described(z.string().max(64), "Why the last attempt failed; not with `state=accepted`").optional(),
  q: described(
    z.string().max(128),
    "A notification id, transaction id, reqId, externalId or merchantTransId; where none is it, its beginning",
  ).optional(),
  from: moment.optional(),
  to: moment.optional(),
  command: z.enum(notifiedCommands).optional(),
  tid: described(z.string().max(64), "Terminal ID").optional(),
  mid: described(z.string().max(64), "Merchant ID").optional(),
  refId: z.string().max(64).optional(),
  approveCode: z.string().max(64).optional(),
  billId: z.string().max(256).optional(),
  lastFour: described(z.string().regex(/^\d{4}$/, "must be four digits"), "Of the card number").optional(),
  contains: described(z.string().max(64), "A part of merchantTransId").optional(),
  result: described(z.enum(["approved", "declined"]), "By isoResponseCode: 00, or another one").optional(),
  amountFrom: described(amount, "The least amount, or totalAmount of a settlement, in whatever currency").optional(),
  amountTo: described(amount, "The highest").optional(),
  after: described(z.string().max(512), "`next` of the previous page").optional(),
  limit,
};

const ownSearchQuery = z.strictObject(searched);
const searchQuery = z.strictObject({
  partner: described(partnerIdText, "A partner's id").optional(),
  ...searched,
});

const sealedSchema = componentOf("SealedNotification", "A notification as an attempt would send it now", {
  data: described(z.string(), "The sealed IPN, as in a callback's body"),
  headers: described(z.record(z.string(), z.string()), "The headers that a callback would carry"),
  cipher: z.enum(ciphers),
  encoding: z.enum(encodings),
  encryptionKeyId: z.string(),
});

/** A notification as the operator sees it. */
const inspectedSchema = component(
  detailSchema.extend({
    events: described(
      z.array(z.object({ kind: z.string(), at: z.iso.datetime(), detail: z.record(z.string(), z.unknown()) })),
      "Events about it and its transaction, oldest first; at most the newest 100",
    ),
  }),
  "InspectedNotification",
  "A notification with its attempts and events",
);

const explainedSchema = componentOf("ExplainedNotification", "What an attempt would send now", {
  kind: z.enum(["card", "settlement"]),
  ipn: described(z.record(z.string(), z.unknown()), "Every field under its name on the wire, with its signature"),
  signed: z.object({
    mode: z.enum(["fields", "whole"]),
    text: described(z.string(), "The signed string (section 5.1)"),
    keyId: z.string(),
  }),
  cipher: z.string(),
  encoding: z.string(),
  url: described(z.string().nullable(), "Where it would go now"),
  encryptionKeyId: z.string(),
  headers: z.record(z.string(), z.string()),
  body: described(z.string(), "As POSTed: the IPN encrypted"),
});

const { waiting: _, ...proved } = detailSchema.shape;

const issued = {
  issuedAt: z.iso.datetime(),
  contentSha256: described(z.string(), "Of the content as it was committed with the transaction"),
};

/** The proof after the day of history was dropped. */
const shortProof = z.object({
  ...issued,
  id: z.uuid(),
  partnerId: z.uuid(),
  transactionId: z.uuid().nullable(),
  command: z.string(),
  createdAt: z.iso.datetime(),
  state: z.literal("accepted"),
  startedAt: described(
    z.iso.datetime(),
    "Start of the accepted attempt; `durationMs`, `url`, `address`, `httpStatus` and `keyId` are of the same attempt",
  ),
  durationMs: z.int(),
  url: z.string(),
  address: z.string().nullable(),
  httpStatus: z.int().nullable(),
  keyId: z.string().nullable(),
  attempts: described(z.int(), "The number of all attempts"),
});

const proofSchema = componentOf("ProofOfDelivery", "A notification's history, signed for a dispute", {
  proof: z.union([z.object({ ...issued, ...proved }), shortProof]),
  signature: described(
    z.object({ algorithm: z.literal("Ed25519"), publicKey: z.string(), value: z.string() }),
    "Over the canonical JSON (RFC 8785) of `proof`; the key is SubjectPublicKeyInfo, both in base64",
  ),
});

export const params = z.object({ id: described(z.string(), "The notification's id") });
export const ownParams = z.object({ id: described(z.string(), "The notification's id, as in webhook-id") });

/** The partner's own notifications: pull, search, look up. */
export function notificationRoutes({ app, parts, callers, limits }: PartnerRoutes): void {
  /** Whether the waiting caller is still connected, and the partner's state once the wait is over. */
  const presence = (request: FastifyRequest, reply: FastifyReply) => {
    const partnerNow = async () => {
      await callers.authenticate(request);
      return callers.partner(request);
    };
    return { signal: untilGone(reply), partnerNow };
  };

  app.get(
    "/v1/notifications",
    ownOperation(partner("pull", "pulls").reads, "pullNotifications", "Fetch what was missed", {
      description:
        "Everything ever created for you that is still kept, in commit order, sealed as it would be sent now. " +
        "Go on from `next`: nothing is skipped. Deduplicate by the IPN's id. With `wait` an empty page is answered " +
        "as soon as there is something, or when the time is over; as many requests may wait as the service " +
        "allows, and one more is refused.",
      querystring: pullQuery,
      response: responses(
        [200, pulledSchema, "A page; empty at the end"],
        "too_many_requests",
        "invalid_cursor",
        "cursor_from_another_history",
        "cursor_expired",
      ),
    }),
    async (request, reply) => {
      const { wait, ...page } = request.query;
      const patience = wait === undefined ? undefined : { durationMs: wait * 1_000, ...presence(request, reply) };
      const pause = limits.pausesOf(request);
      return await parts.notifications.pull(callers.partner(request), { ...page, pause, wait: patience });
    },
  );
  app.get(
    "/v1/notifications/search",
    ownOperation(partnerReads, "searchOwnNotifications", "Search your notifications", {
      description: "For people who look for one: to fetch what was missed, use the list in commit order.",
      querystring: ownSearchQuery,
      response: responses([200, searchSchema, "A page"], "invalid_cursor"),
    }),
    async (request) => {
      const { reason, ...search } = request.query;
      const own = { ...search, reason: reasonsOfPartner(reason), partnerId: callers.partner(request).id };
      const { items, next } = await parts.notifications.search(own);
      return { items: items.map(summaryForPartner), next };
    },
  );
  app.get(
    "/v1/notifications/:id",
    ownOperation(partnerReads, "getNotification", "Get a notification with its attempts", {
      params: ownParams,
      response: responses([200, detailSchema, "The notification"], "not_found"),
    }),
    async (request) => {
      const found = await parts.notifications.find(
        requireNotificationId(request.params.id),
        callers.partner(request).id,
      );
      return found === undefined ? noSuch("notification") : asItsPartnerSees(found);
    },
  );
  app.get(
    "/v1/notifications/:id/sealed",
    ownOperation(
      partner("pull", "requests").reads,
      "getSealedNotification",
      "Fetch one notification, sealed as it would be sent now",
      {
        description: "Your key opens it. Other than the list in commit order, it does not count as pulled.",
        params: ownParams,
        response: responses([200, sealedSchema, "The sealed IPN"], "not_found", "content_changed"),
      },
    ),
    async (request) => await parts.notifications.sealed(request.params.id, callers.partner(request)),
  );
}

export function requireNotificationId(text: string): NotificationId {
  return requireId<"notification">(text, "notification");
}

const historyQuery = z.strictObject({
  format: described(z.enum(historyFormats).default("json-lines"), "One line for each notification"),
  partner: described(partnerIdText, "Only this partner's").optional(),
});

/** The operator's view of every partner's notifications, and their history for a system that keeps it longer. */
export function operatorNotificationRoutes(app: HttpApp, parts: HttpDependencies): void {
  const { notifications, directory, history, clock } = parts;
  app.get(
    "/operator/v1/notifications",
    operation(viewer.reads, "searchNotifications", "Search notifications", {
      querystring: searchQuery,
      response: responses([200, searchSchema, "A page"], "unknown_partner", "invalid_cursor"),
    }),
    async (request) => {
      const { partner, ...rest } = request.query;
      return await notifications.search({ ...rest, ...ofPartner(partner) });
    },
  );
  app.get(
    "/operator/v1/notifications/:id",
    operation(viewer.reads, "inspectNotification", "Get a notification with its attempts and events", {
      params,
      response: responses([200, inspectedSchema, "The notification"], "not_found"),
    }),
    async (request) =>
      (await notifications.inspect(requireNotificationId(request.params.id))) ?? noSuch("notification"),
  );
  app.get(
    "/operator/v1/notifications/:id/content",
    operation(
      operator.looks("input"),
      "readNotification",
      "Read a notification's IPN, and how it is signed and encrypted",
      {
        description: "As an attempt would be made now, by the partner's present settings. The audit records each look.",
        params,
        response: responses([200, explainedSchema, "What an attempt would send now"], "not_found", "content_changed"),
      },
    ),
    async (request) => await notifications.explain(request.params.id, (id) => directory.find(id)),
  );
  app.get(
    "/operator/v1/notifications/:id/proof",
    operation(operator.looks("input"), "proveDelivery", "Get a notification's history, signed", {
      description: "For a dispute. The audit records that it was given.",
      params,
      response: responses([200, proofSchema, "The proof"], "not_found", "content_changed"),
    }),
    async (request) => await notifications.prove(request.params.id),
  );
  app.get(
    "/operator/v1/history/:day",
    operation(operator.looks("input"), "exportHistory", "Export a day of history: notifications with their attempts", {
      description:
        "Days are in UTC, and are exported from a minute after their end on. Card data are masked, as they are stored. JSON " +
        "lines have the whole content and every attempt, CSV the fields by which people search and the last " +
        "attempt. The audit records the export.",
      params: z.object({ day: described(z.iso.date(), "Such as 2026-11-21") }),
      querystring: historyQuery,
      response: responses([200, z.string(), "The day", "application/jsonl"], "invalid_value", "not_found"),
    }),
    async ({ params, query: { format, partner } }, reply) => {
      const pages = await readDay(history, params.day, clock.nowMs(), ofPartner(partner).partnerId);
      const type = format === "csv" ? "text/csv; charset=utf-8" : "application/jsonl";
      return reply.type(type).send(exported(historyText(pages, format)));
    },
  );
}

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
