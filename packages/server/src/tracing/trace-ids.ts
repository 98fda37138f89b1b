import { type SpanContext, TraceFlags } from "@opentelemetry/api";
import { RandomIdGenerator } from "@opentelemetry/sdk-trace";

/** The ids of a span. */
export type SpanIds = Pick<SpanContext, "traceId" | "spanId">;

/**
 * The ids of the first span in the trace of what happens to a transaction, or to a notification without one, by
 * itself: its id is the trace id, and the random half of it the span's. Every instance derives the same, after a
 * restart too, so nothing is stored.
 */
export function firstSpanOf(id: string): SpanIds {
  const traceId = id.replaceAll("-", "");
  return { traceId, spanId: traceId.slice(16) };
}

/** The same as a parent of spans. */
export function asParent(ids: SpanIds, isSampled: boolean): SpanContext {
  return { ...ids, traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE, isRemote: true };
}

/** Makes random ids, except for a span that is started with ids of its own. */
export class TraceIds extends RandomIdGenerator {
  #given: SpanIds | undefined;

  /** @param start starts one span */
  using<Result>(ids: SpanIds, start: () => Result): Result {
    this.#given = ids;
    try {
      return start();
    } finally {
      this.#given = undefined;
    }
  }

  override generateTraceId(): string {
    return this.#given?.traceId ?? super.generateTraceId();
  }

  override generateSpanId(): string {
    return this.#given?.spanId ?? super.generateSpanId();
  }
}
