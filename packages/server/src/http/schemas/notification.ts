import { notifiedCommands } from "@paybell/contract";
import { z } from "zod";
import { lookedUpText, partnerIdText } from "./looked-up.ts";
import { component, described } from "./registry.ts";

const states = ["pending", "accepted", "parked"] as const;
const time = z.iso.datetime();

const summary = {
  id: z.uuid(),
  partnerId: z.uuid(),
  transactionId: described(z.uuid().nullable(), "null of a test notification"),
  command: z.enum(notifiedCommands),
  kind: z.enum(["card", "settlement"]),
  state: described(z.enum(states), "parked: given up for now, kept, replayable"),
  attemptsMade: z.int(),
  nextAttemptAt: time.nullable(),
  lastReason: described(z.string().nullable(), "Why the last attempt failed, in a stable word"),
  createdAt: time,
  outcomeAt: time.nullable(),
  waitsFor: described(
    z.enum(["partner_paused", "partner_disabled", "endpoint_gone", "endpoint_open"]).nullable(),
    "Why a pending one is not sent now, other than that it is not due yet",
  ),
  partnerName: z.string(),
  amount: described(
    z.string().nullable(),
    "A settlement's totalAmount; null where it is too large to be read for a list",
  ),
  currency: z.string().nullable(),
  merchantTransId: z.string().nullable(),
};

const attempt = z.object({
  attemptNo: described(z.int(), "From 1, and on through every redelivery"),
  startedAt: time,
  durationMs: z.number(),
  url: z.string(),
  address: described(z.string().nullable(), "Shown to the operator; null to the partner"),
  httpStatus: z.int().nullable(),
  reason: z.string().nullable(),
  detail: described(z.string().nullable(), "In words; to the partner without addresses that were looked up"),
  answer: described(z.string().nullable(), "The first 4 KiB of an answer that was not 2xx"),
  keyId: z.string().nullable(),
  instanceId: z.string(),
});

export const summarySchema = component(z.object(summary), "Notification", "A notification and where it stands");

const known = z.string().nullable();

const subjectSchema = component(
  z.object({
    merchantTransId: known,
    amount: known,
    currency: known,
    tid: known,
    mid: known,
    merchantName: known,
    refId: known,
    approveCode: known,
    isoResponseCode: known,
    reqId: known,
    lastFour: described(known, "Of the card number"),
  }),
  "NotificationSubject",
  "What people tell notifications apart by; null where it is not known",
);

const waiting = component(
  z.object({
    because: described(
      z.enum(["paused", "disabled", "circuit", "gone", "order", "retry", "turn"]),
      "circuit: its endpoint failed too often; gone: its URL answered 410; order: an earlier one of its chain is on " +
        "its way; retry: the schedule; turn: it is due, and waits for a slot or its partner's pace",
    ),
    until: described(time.nullable(), "When it goes on at the earliest; null: when a person has done something"),
    since: time.nullable(),
    endpointId: z.uuid().nullable(),
    target: described(z.string().nullable(), "The endpoint's origin or URL"),
    reason: described(z.string().nullable(), "Why the endpoint failed last"),
    after: described(z.uuid().nullable(), "The notification that has to be accepted or parked first"),
  }),
  "Waiting",
  "Why a pending notification was not delivered yet",
);

export const detailSchema = component(
  z.object({
    ...summary,
    callBackUrl: z.string().nullable(),
    subject: subjectSchema,
    waiting: waiting.nullable(),
    attempts: z.array(attempt),
  }),
  "NotificationDetail",
  "A notification with its attempts",
);

export const pulledSchema = component(
  z.object({
    items: z.array(
      z.object({
        id: z.uuid(),
        createdAt: time,
        kind: z.enum(["card", "settlement"]),
        state: z.enum(states),
        data: described(z.string(), "The sealed IPN, as in a callback's body"),
        headers: described(z.record(z.string(), z.string()), "The headers that a callback would carry"),
      }),
    ),
    next: described(z.string(), "`after` of the next page; given at the end too, to go on from later"),
  }),
  "NotificationPage",
  "A page of everything ever created for the partner that is still kept, in commit order",
);

export const searchSchema = component(
  z.object({
    items: z.array(
      component(z.object({ ...summary, subject: subjectSchema }), "ListedNotification", "With its subject"),
    ),
    next: z.string().nullable(),
  }),
  "NotificationSearch",
  "Notifications, the newest first",
);

const limit = described(z.coerce.number().int().min(1).max(500).default(100), "Items of a page, at most 500");
export const moment = described(
  z.iso.datetime({ offset: true }).refine((text) => !(Date.parse(text) < 0), { message: "must be a time since 1970" }),
  "ISO 8601 with a zone",
);

export const pullQuery = z.strictObject({
  after: described(
    z.string().max(512),
    "`next` of the page before; `now`: nothing that is there already; left out: from the beginning",
  ).optional(),
  limit,
  wait: described(
    z.coerce.number().int().min(1).max(30),
    "Seconds for which an empty page is kept back: it is answered as soon as there is something",
  ).optional(),
});

const searched = {
  state: z.enum(states).optional(),
  q: described(
    lookedUpText(128),
    "A notification id, transaction id, reqId, externalId or merchantTransId; where none is it, its beginning",
  ).optional(),
  from: moment.optional(),
  to: moment.optional(),
  command: z.enum(notifiedCommands).optional(),
  tid: described(lookedUpText(64), "Terminal ID").optional(),
  mid: described(lookedUpText(64), "Merchant ID").optional(),
  refId: lookedUpText(64).optional(),
  approveCode: lookedUpText(64).optional(),
  billId: lookedUpText(256).optional(),
  lastFour: described(z.string().regex(/^\d{4}$/), "Of the card number").optional(),
  contains: described(lookedUpText(64), "A part of merchantTransId").optional(),
  after: described(z.string().max(512), "`next` of the page before").optional(),
  limit,
};

export const ownSearchQuery = z.strictObject(searched);
export const searchQuery = z.strictObject({
  partner: described(partnerIdText, "A partner's id").optional(),
  ...searched,
});

export const pageQuery = z.strictObject({
  after: described(lookedUpText(64), "`next` of the page before").optional(),
  limit,
});
