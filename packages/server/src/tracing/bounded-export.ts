import { type Context, TraceFlags } from "@opentelemetry/api";
import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import {
  BatchSpanProcessor,
  type ReadableSpan,
  type Span,
  type SpanExporter,
  type SpanProcessor,
} from "@opentelemetry/sdk-trace";

export interface BoundedExportOptions {
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

  onStart(_span: Span, _parent: Context): void {
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
