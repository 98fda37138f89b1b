import { notifiedCommands } from "@paybell/contract";
import { z } from "zod";
import { componentOf, described } from "../../input/descriptions.ts";
import { notificationStates } from "../../notification-state.ts";
import { limit, partnerIdText } from "./problem.ts";

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

export const moment = described(
  z.iso.datetime({ offset: true }).refine((text) => !(Date.parse(text) < 0), { message: "must be a time since 1970" }),
  "ISO 8601 with a zone",
);

export const pullQuery = z.strictObject({
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
  lastFour: described(z.string().regex(/^\d{4}$/), "Of the card number").optional(),
  contains: described(z.string().max(64), "A part of merchantTransId").optional(),
  result: described(z.enum(["approved", "declined"]), "By isoResponseCode: 00, or another one").optional(),
  amountFrom: described(amount, "The least amount, or totalAmount of a settlement, in whatever currency").optional(),
  amountTo: described(amount, "The highest").optional(),
  after: described(z.string().max(512), "`next` of the previous page").optional(),
  limit,
};

export const ownSearchQuery = z.strictObject(searched);
export const searchQuery = z.strictObject({
  partner: described(partnerIdText, "A partner's id").optional(),
  ...searched,
});

export const pageQuery = z.strictObject({
  after: described(z.string().max(64), "`next` of the previous page").optional(),
  limit,
});
