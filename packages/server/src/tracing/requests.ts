import { type Span, SpanStatusCode } from "@opentelemetry/api";
import { parseTraceParent } from "@opentelemetry/core";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Traces } from "./traces.ts";

const tracedRoutes = /^\/(?:operator\/)?v1\//;

/**
 * A span for each request to the partner and the operator API, in the trace that the caller's `traceparent` names. It
 * begins after the caller was let in, so that strangers neither name traces nor fill the queue. `tracestate` is free
 * text of the caller: it is not taken over.
 */
export function traceRequests(app: FastifyInstance, traces: Traces): void {
  const spans = new WeakMap<FastifyRequest, { readonly span: Span; readonly startedAtMs: number }>();
  app.addHook("preParsing", (request, reply, _payload, done) => {
    const { url: route = "" } = request.routeOptions;
    if (tracedRoutes.test(route)) {
      const startedAtMs = Date.now() - reply.elapsedTime;
      const given = request.headers["traceparent"];
      const parent = typeof given === "string" ? parseTraceParent(given) : null;
      const attributes = {
        "http.request.method": request.method,
        "http.route": route,
        "paybell.request": request.id,
      };
      const options = { startTime: startedAtMs, attributes };
      const caller = parent === null ? undefined : { ...parent, isRemote: true };
      spans.set(request, { span: traces.beginRequest(`${request.method} ${route}`, options, caller), startedAtMs });
    }
    done();
  });
  // The body was read in the connection's context: the handler is entered in that of the request.
  app.addHook("preHandler", (request, _reply, done) => {
    const begun = spans.get(request);
    if (begun === undefined) done();
    else traces.inRequest(begun.span, done);
  });
  app.addHook("onResponse", (request, reply, done) => {
    const begun = spans.get(request);
    if (begun !== undefined) {
      const { span, startedAtMs } = begun;
      span.setAttribute("http.response.status_code", reply.statusCode);
      if (reply.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end(startedAtMs + reply.elapsedTime);
    }
    done();
  });
}
