import { z } from "zod";
import { bodyOf, componentOf, described } from "../../input/descriptions.ts";
import { limit, partnerIdText } from "./problem.ts";

const states = ["closed", "open", "gone"] as const;
const time = z.iso.datetime();

export const endpointSchema = componentOf(
  "Endpoint",
  "A callback endpoint that has failed: an origin, or a URL that is gone",
  {
    id: z.uuid(),
    partnerId: z.uuid(),
    kind: described(z.enum(["origin", "url"]), "url: one exact URL, which answered 410"),
    target: described(z.string(), "https://host:port, or the exact URL"),
    state: described(
      z.enum(states),
      "open: deliveries wait, one tries it from time to time; gone: they wait until it is closed manually",
    ),
    failures: described(z.int(), "Failures in a row"),
    lastReason: described(z.string().nullable(), "Why it failed last, in a stable word"),
    openedAt: time.nullable(),
    probeAt: described(time.nullable(), "While it is open: when one delivery tries it again"),
    probes: described(z.int(), "Deliveries that tried it again since it opened"),
    updatedAt: time,
  },
);

export const endpointPageSchema = componentOf(
  "EndpointPage",
  "Endpoints, the newest first. One that never failed is closed, and not among them",
  { items: z.array(endpointSchema), next: z.uuid().nullable() },
);

const page = {
  state: z.enum(states).optional(),
  after: described(z.uuid().optional(), "`next` of the previous page"),
  limit,
};

export const endpointsQuery = z.strictObject(page);
export const operatorEndpointsQuery = z.strictObject({
  partner: described(partnerIdText, "A partner's id").optional(),
  ...page,
});

export const closeEndpointBody = bodyOf("EndpointClosing", "Whose endpoint to close", {
  partnerId: described(partnerIdText, "Only if it is this partner's").optional(),
});
