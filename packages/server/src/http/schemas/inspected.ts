import { z } from "zod";
import { detailSchema } from "./notification.ts";
import { component, described } from "./registry.ts";

/** A notification as the operator sees it. */
export const inspectedSchema = component(
  detailSchema.extend({
    events: described(
      z.array(z.object({ kind: z.string(), at: z.iso.datetime(), detail: z.record(z.string(), z.unknown()) })),
      "What was recorded about it and its transaction, the oldest first; of very many, the newest 100",
    ),
  }),
  "InspectedNotification",
  "A notification with its attempts and events",
);
