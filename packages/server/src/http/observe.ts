import type { FastifyInstance, FastifyRequest } from "fastify";
import type { HttpDependencies } from "./dependencies.ts";
import type { CallerAddress } from "./request-guards.ts";

/** Every answer names its request, is never cached, is counted, and at debug is a line of the log. */
export function observeRequests(
  app: FastifyInstance,
  { log, metrics, address }: Pick<HttpDependencies, "log" | "metrics"> & { readonly address: CallerAddress },
): void {
  // An increase is seen only of a series that exists: the alerts need the first one of each route.
  app.addHook("onRoute", ({ method, url: route }) => {
    for (const status of ["500", "503"]) metrics.requests.inc({ method: String(method), route, status }, 0);
  });
  app.addHook("onRequest", async (request, reply) => {
    reply.header("x-request-id", request.id).header("cache-control", "no-store");
  });
  app.addHook("onResponse", async (request, reply) => {
    const { method, url: route = "none" } = request.routeOptions;
    const durationMs = reply.elapsedTime;
    metrics.requests.inc({ method: String(method ?? request.method), route, status: String(reply.statusCode) });
    // The time of waiting says nothing about our speed.
    if (!mayWait(request)) metrics.requestSeconds.observe({ route }, durationMs / 1000);
    if (!log.isLevelEnabled("debug")) return;
    log.debug(
      {
        requestId: request.id,
        address: address(request.raw),
        method: request.method,
        route,
        status: reply.statusCode,
        durationMs,
      },
      "answered",
    );
  });
}

function mayWait({ query }: FastifyRequest): boolean {
  return Object.hasOwn(Object(query), "wait");
}
