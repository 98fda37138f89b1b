import { z } from "zod";
import { cachedFor } from "../cached.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { answer, operations, responses } from "../schemas/problem.ts";

const operation = operations("Service");

const checkSchema = z.object({
  ready: z.boolean(),
  checks: z.record(z.string(), z.object({ ok: z.boolean(), detail: z.string() })),
});
/** A caller in a loop causes at most one check a second. */
const keptMs = 1_000;

/** Whether the process lives, and stays: for everybody, and for the partners' proxy. */
export function aliveRoute(app: HttpApp, { isStopping }: Pick<HttpDependencies, "isStopping">): void {
  app.get(
    "/healthz",
    operation("isAlive", "Whether the process is alive", {
      response: {
        ...responses([200, z.object({ ok: z.literal(true) }), "It is"]),
        ...answer(503, z.object({ ok: z.literal(false) }), "It stops: use another instance"),
      },
    }),
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
    operation("isReady", "Whether the service can work", {
      response: {
        ...responses([200, checkSchema, "It can"]),
        ...answer(503, checkSchema, "It cannot: see what is not ok"),
      },
    }),
    async (_, reply) => {
      const state = await healthNow();
      return reply.code(state.ready ? 200 : 503).send(state);
    },
  );
  app.get(
    "/metrics",
    operation("getMetrics", "What the service counts, for Prometheus", {
      response: responses([200, z.string(), "Prometheus text format", "text/plain"]),
    }),
    async (_, reply) => reply.type(metrics.registry.contentType).send(await metricsNow()),
  );
}
