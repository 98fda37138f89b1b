import { z } from "zod";
import { cachedFor } from "../cached.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { responses } from "../schemas/problem.ts";

const checkSchema = z.object({
  ready: z.boolean(),
  checks: z.record(z.string(), z.object({ ok: z.boolean(), detail: z.string() })),
});
const tags = ["Service"];
/** A caller in a loop causes at most one check a second. */
const keptMs = 1_000;

/** Whether the process lives, and stays: for everybody, and for the partners' proxy. */
export function aliveRoute(app: HttpApp, { isStopping }: Pick<HttpDependencies, "isStopping">): void {
  app.get(
    "/healthz",
    {
      schema: {
        operationId: "isAlive",
        tags,
        summary: "Whether the process is alive",
        response: responses({
          200: { schema: z.object({ ok: z.literal(true) }), description: "It is" },
          503: { schema: z.object({ ok: z.literal(false) }), description: "It stops: use another instance" },
        }),
      },
    },
    async (_, reply) => {
      if (isStopping()) return reply.code(503).send({ ok: false });
      return { ok: true as const };
    },
  );
}

/** Health and metrics: both name what the service depends on. */
export function systemRoutes(app: HttpApp, { health, metrics }: HttpDependencies): void {
  const healthNow = cachedFor(keptMs, health);
  const metricsNow = cachedFor(keptMs, () => metrics.text());
  app.get(
    "/readyz",
    {
      schema: {
        operationId: "isReady",
        tags,
        summary: "Whether the service can work",
        response: responses({
          200: { schema: checkSchema, description: "It can" },
          503: { schema: checkSchema, description: "It cannot: see what is not ok" },
        }),
      },
    },
    async (_, reply) => {
      const state = await healthNow();
      return reply.code(state.ready ? 200 : 503).send(state);
    },
  );
  app.get(
    "/metrics",
    {
      schema: {
        operationId: "getMetrics",
        tags,
        summary: "What the service counts, for Prometheus",
        response: responses({
          200: { schema: z.string(), description: "Prometheus text format", type: "text/plain" },
        }),
      },
    },
    async (_, reply) => reply.type(metrics.registry.contentType).send(await metricsNow()),
  );
}
