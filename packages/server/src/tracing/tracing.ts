import { hostname } from "node:os";
import { type Context, ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, TraceFlags } from "@opentelemetry/api";
import { type ExportResult, ExportResultCode, parseTraceParent } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { detectResources, resourceAttributesEnvDetector, resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type Sampler,
  SamplingDecision,
  type Span as SdkSpan,
  type SpanExporter,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { type Acquirers, askedBy } from "../acquirer/acquirer.ts";
import { settingsName } from "../acquirer/registered/registry.ts";
import { within } from "../clock.ts";
import type { Config } from "../config/config.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { TraceIds, Traces } from "./traces.ts";

export interface TracingOptions {
  readonly config: TraceConfig;
  readonly version: string;
  readonly log: Pick<Log, "warn" | "info">;
  readonly metrics: Pick<Metrics, "traceSpansDropped">;
}

export type TraceConfig = Pick<
  Config,
  "tracesEndpoint" | "tracesHeaders" | "tracesServiceName" | "tracesSampler" | "tracesShare"
>;

export type Tracing = ReturnType<typeof openTracing>;

/** About 8 MB of spans. */
const spansMax = 8_192;
const exportEveryMs = 1_000;
/** The longest wait of a stop for the last spans. */
const flushMs = 2_000;

/** Opens the export of traces. It starts no connection before the first span. */
export function openTracing({ config, version, log, metrics }: TracingOptions) {
  const ids = new TraceIds();
  const { sampler, root } = samplersOf(config);
  const provider = new TracerProvider({
    sampler,
    idGenerator: ids,
    resource: resourceOf(config, version),
    spanProcessors: [
      new BoundedExport({
        exporter: exporterOf(config),
        spansMax,
        everyMs: exportEveryMs,
        onDropped: (spans, reason) => metrics.traceSpansDropped.inc({ reason }, spans),
        onDown: (reason) => log.warn({ reason }, "traces cannot be exported: spans are dropped and counted"),
        onUp: () => log.info({}, "traces are exported again"),
      }),
    ],
  });
  const isSampled = (traceId: string) => {
    const { decision } = root.shouldSample(ROOT_CONTEXT, traceId, "", SpanKind.INTERNAL, {}, []);
    return decision === SamplingDecision.RECORD_AND_SAMPLED;
  };
  const traces = new Traces({ tracer: provider.getTracer("paybell", version), ids, isSampled });
  return {
    traces,
    acquirers: (acquirers: Acquirers) => tracedAcquirers(acquirers, traces),
    requests: (app: FastifyInstance) => traceRequests(app, traces),
    /** Exports what is left, and waits for that no longer than two seconds. */
    async stop(): Promise<void> {
      // A failed export was counted and logged.
      const ended = provider.shutdown().catch(() => undefined);
      await within(flushMs, ended);
    },
  };
}

/** Sends an empty export. @throws Error if the collector does not accept it */
export async function probeCollector(config: TraceConfig): Promise<void> {
  const exporter = exporterOf(config);
  const { code, error } = await new Promise<ExportResult>((resolve) => exporter.export([], resolve));
  await exporter.shutdown();
  if (code !== ExportResultCode.SUCCESS) throw error ?? new Error("the export was not accepted");
}

function exporterOf({ tracesEndpoint, tracesHeaders }: TraceConfig): OTLPTraceExporter {
  const base = tracesEndpoint ?? "";
  // An option of its connections would replace the certificates that the exporter reads from its own settings.
  return new OTLPTraceExporter({
    url: new URL("v1/traces", base.endsWith("/") ? base : `${base}/`).href,
    headers: Object.fromEntries(tracesHeaders),
  });
}

function resourceOf({ tracesServiceName }: TraceConfig, version: string) {
  const own = { "service.name": tracesServiceName, "service.version": version, "host.name": hostname() };
  return detectResources({ detectors: [resourceAttributesEnvDetector] }).merge(resourceFromAttributes(own));
}

/** `root` decides about traces that no caller has decided about. */
function samplersOf({ tracesSampler, tracesShare }: TraceConfig): {
  readonly sampler: Sampler;
  readonly root: Sampler;
} {
  const root = rootOf(tracesSampler.replace("parentbased_", ""), tracesShare);
  return { sampler: tracesSampler.startsWith("parentbased_") ? new ParentBasedSampler({ root }) : root, root };
}

function rootOf(name: string, share: number): Sampler {
  if (name === "always_on") return new AlwaysOnSampler();
  if (name === "always_off") return new AlwaysOffSampler();
  return new TraceIdRatioBasedSampler(share);
}

const tracedRoutes = /^\/(?:operator\/)?v1\//;

/**
 * A span for each request to the partner and the operator API, in the trace that the caller's `traceparent` names. It
 * begins after the caller was let in, so that strangers neither name traces nor fill the queue. `tracestate` is free
 * text of the caller: it is not taken over.
 */
function traceRequests(app: FastifyInstance, traces: Traces): void {
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

/** The same acquirers, each exchange with a span. */
function tracedAcquirers(acquirers: Acquirers, traces: Traces): Acquirers {
  return {
    of(name) {
      const acquirer = acquirers.of(name);
      return askedBy(acquirer, (...asked) => traces.ask(name || settingsName, acquirer, ...asked));
    },
    has: (name) => acquirers.has(name),
    names: () => acquirers.names(),
  };
}

interface BoundedExportOptions {
  readonly exporter: SpanExporter;
  /** Maximum number of spans that wait for their export, those on the wire included. */
  readonly spansMax: number;
  readonly everyMs: number;
  readonly onDropped: (spans: number, reason: "queue_full" | "not_accepted") => void;
  /** Exports fail from now on: called once for an outage. */
  readonly onDown: (reason: string) => void;
  readonly onUp: () => void;
}

const batchMax = 512;

/** Exports spans in batches. It never waits: beyond its bound, and in an outage, spans are dropped and counted. */
export class BoundedExport implements SpanProcessor {
  readonly #options: BoundedExportOptions;
  readonly #batches: BatchSpanProcessor;
  #waiting = 0;
  #isDown = false;

  constructor(options: BoundedExportOptions) {
    this.#options = options;
    const { exporter, spansMax, everyMs } = options;
    this.#batches = new BatchSpanProcessor({
      exporter: {
        export: (spans, done) => {
          exporter.export(spans, (result) => {
            this.#ended(spans, result);
            done(result);
          });
        },
        shutdown: () => exporter.shutdown(),
      },
      maxQueueSize: spansMax,
      maxExportBatchSize: Math.min(batchMax, spansMax),
      scheduledDelayMillis: everyMs,
    });
  }

  onStart(_span: SdkSpan, _parent: Context): void {
    // Only ended spans are exported.
  }

  onEnd(span: ReadableSpan): void {
    if ((span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0) return;
    if (this.#waiting >= this.#options.spansMax) {
      this.#options.onDropped(1, "queue_full");
      return;
    }
    this.#waiting += 1;
    this.#batches.onEnd(span);
  }

  forceFlush(): Promise<void> {
    return this.#batches.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.#batches.shutdown();
  }

  #ended({ length }: readonly ReadableSpan[], { code, error }: ExportResult): void {
    this.#waiting -= length;
    const { onDropped, onDown, onUp } = this.#options;
    const wasDown = this.#isDown;
    this.#isDown = code !== ExportResultCode.SUCCESS;
    if (this.#isDown) onDropped(length, "not_accepted");
    if (this.#isDown && !wasDown) onDown(error?.message ?? "no reason was given");
    if (!this.#isDown && wasDown) onUp();
  }
}
