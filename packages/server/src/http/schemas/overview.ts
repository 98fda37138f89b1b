import { z } from "zod";
import { componentOf, described } from "../../input/descriptions.ts";
import { because } from "./notification.ts";

const time = z.iso.datetime();
const ms = z.number().nullable();
const outcomes = {
  accepted: z.int(),
  failed: described(z.int(), "Attempts that failed, whether they are repeated or not"),
  parked: z.int(),
};

export const spanQuery = z.strictObject({
  span: described(z.enum(["hour", "day", "week"]).default("hour"), "Back from now"),
});

export const figuresSchema = componentOf("Figures", "Deliveries in a period, of all instances; a few seconds late", {
  span: z.enum(["hour", "day", "week"]),
  asOf: time,
  points: described(
    z.array(z.object({ at: time, ...outcomes })),
    "One for each minute, or hour of a week, in which something was delivered",
  ),
  ...outcomes,
  attemptP50Ms: described(ms, "Of all attempts: how long the partner's endpoint took"),
  attemptP99Ms: ms,
  deliveryP50Ms: described(ms, "From creation, or redelivery, to acceptance"),
  deliveryP99Ms: ms,
});

const troubleSchema = componentOf("Trouble", "Why a partner does not receive its notifications now", {
  partnerId: z.uuid(),
  partnerName: z.string(),
  notificationId: described(z.uuid(), "The oldest pending one that failed: the reason is that of its last attempt"),
  because,
  reason: described(z.string().nullable(), "Why the last attempt failed, in a stable word; null: none was made"),
  httpStatus: described(z.int().nullable(), "Of the last attempt; null: without an answer"),
  since: described(time.nullable(), "The first attempt of its schedule; or when the partner was paused or disabled"),
  waiting: described(z.int(), "Pending notifications; 1,000: or more"),
  nextAttemptAt: described(time.nullable(), "At the earliest; null: when a person acts"),
  parkingAt: described(time.nullable(), "When the first is parked; null: not while the partner is not active"),
});

export const backlogSchema = componentOf("Backlog", "What you have not received, and how far you have pulled", {
  trouble: described(troubleSchema.nullable(), "null: nothing waits, or what waits is under way"),
  pending: described(z.int(), "Exact up to 10,000"),
  oldestPendingAt: time.nullable(),
  parked: described(z.int(), "Exact up to 10,000"),
  pull: described(
    z
      .object({
        at: described(time, "When you last passed a cursor"),
        upTo: described(time.nullable(), "What was created before, you have seen"),
        left: described(z.int().nullable(), "Notifications after the cursor; 1,000: or more"),
        problem: described(z.string().nullable(), "The code of the error with which the cursor is refused now"),
      })
      .nullable(),
    "How far you have pulled, some seconds late; null: never from a cursor",
  ),
});

export const overviewSchema = componentOf("Overview", "The state of deliveries, and the backlog", {
  trouble: described(
    z.array(troubleSchema),
    "Partners that do not receive their notifications now, the first to be parked first; at most 50",
  ),
  figures: figuresSchema,
  pending: described(z.int(), "Exact up to 10,000"),
  oldestPendingAt: time.nullable(),
  standing: described(
    z.object({
      parked: z.int(),
      tripped: described(z.int(), "Endpoints whose circuit is tripped, or whose URL is gone"),
      reversalsParked: z.int(),
      reversalsPending: z.int(),
      settlementsWaiting: described(z.int(), "Settlements that the acquirer has not answered at the first try"),
    }),
    "Exact up to 10,000",
  ),
  failing: described(
    z.array(z.object({ partnerId: z.uuid(), ...outcomes })),
    "Partners of which attempts failed within the last hour or two, most first; at most 10",
  ),
});
