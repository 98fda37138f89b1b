import { notifiedCommands } from "@paybell/contract";
import { z } from "zod";
import { redeliveryProblems } from "../../delivery/notifications.ts";
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

export const detailSchema = component(
  z.object({ ...summary, callBackUrl: z.string().nullable(), attempts: z.array(attempt) }),
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
  z.object({ items: z.array(summarySchema), next: z.string().nullable() }),
  "NotificationSearch",
  "Notifications, the newest first",
);

const limit = described(z.coerce.number().int().min(1).max(500).default(100), "Items of a page, at most 500");
const moment = described(
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

export const searchQuery = z.strictObject({
  partner: described(partnerIdText, "A partner's id").optional(),
  state: z.enum(states).optional(),
  q: described(lookedUpText(128), "A notification id, transaction id, reqId, externalId or merchantTransId").optional(),
  from: moment.optional(),
  to: moment.optional(),
  after: described(z.string().max(512), "`next` of the page before").optional(),
  limit,
});

export const pageQuery = z.strictObject({
  after: described(lookedUpText(64), "`next` of the page before").optional(),
  limit,
});

export const redeliverBody = z
  .strictObject({
    to: described(z.enum(["original", "registered"]), "Which callback URL; default: original").optional(),
  })
  .optional();

const redeliveryFilter = z
  .strictObject({
    partner: partnerIdText.optional(),
    state: z.enum(["accepted", "parked"]).optional(),
    from: moment.optional(),
    to: moment.optional(),
    reason: described(lookedUpText(64), "Of parked ones: why the last attempt failed").optional(),
  })
  .superRefine(
    (filter, context) => {
      for (const { field, code, rule } of redeliveryProblems(filter)) {
        context.addIssue({ code: "custom", path: field.split(".").slice(1), message: rule, params: { code } });
      }
    },
    // Also where a field has another shape than it must: everything wrong is told at once.
    { when: ({ value }) => typeof value === "object" && value !== null },
  );

export const redeliveriesBody = component(
  z.strictObject({
    filter: described(redeliveryFilter, "Which notifications; an empty filter names them all"),
    to: z.enum(["original", "registered"]).optional(),
    dryRun: described(z.boolean(), "Only counts").optional(),
  }),
  "Redeliveries",
  "Which notifications to send once more",
);

export const redeliveredSchema = z.object({
  matched: z.int(),
  redelivered: z.int(),
  ids: described(z.array(z.uuid()), "The first 100"),
});
