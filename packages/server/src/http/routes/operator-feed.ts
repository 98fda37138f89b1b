import { z } from "zod";
import { componentOf, described } from "../../input/descriptions.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { moneyRecords } from "../schemas/money.ts";
import { limit, operations, responses, untilGone } from "../schemas/problem.ts";

const operation = operations("Money");

const query = z.strictObject({
  after: described(
    z.string().max(16_384),
    "`next` of the previous page; `now`: only later ones; left out: from the beginning of what is kept",
  ).optional(),
  limit,
  wait: described(
    z.coerce.number().int().min(1).max(30),
    "Seconds to wait for an event while there is none",
  ).optional(),
});

const page = componentOf("EventFeed", "Events in the order in which they were committed", {
  items: z.array(moneyRecords.events.one),
  next: described(z.string(), "For `after`, also after the last page"),
});

/** The operator's events for a system that reads all of them. */
export function operatorFeedRoutes(app: HttpApp, { feed }: HttpDependencies): void {
  app.get(
    "/operator/v1/feed",
    operation("readFeed", "Read every event, the oldest first", {
      description:
        "For a SIEM. Go on from `next`: nothing is skipped, because no event appears later behind one that was " +
        "read. With `wait` an empty page is answered as soon as there is an event, or when the time is over.",
      querystring: query,
      response: responses(
        [200, page, "A page; empty at the end"],
        "too_many_requests",
        "invalid_cursor",
        "cursor_from_another_history",
        "cursor_expired",
      ),
    }),
    async ({ query: { after, limit, wait } }, reply) => {
      if (wait === undefined) return await feed.read({ after, limit });
      return await feed.read({ after, limit }, { durationMs: wait * 1_000, signal: untilGone(reply) });
    },
  );
}
