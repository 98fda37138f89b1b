import { z } from "zod";
import { component, described } from "../../input/descriptions.ts";

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

export const figuresSchema = component(
  z.object({
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
  }),
  "Figures",
  "Deliveries in a period, of all instances; a few seconds late",
);

export const overviewSchema = component(
  z.object({
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
  }),
  "Overview",
  "The state of deliveries, and the backlog",
);
