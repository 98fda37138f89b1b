import { AsyncLocalStorage } from "node:async_hooks";
import {
  type Attributes,
  type Context,
  isValidSpanId,
  isValidTraceId,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { RandomIdGenerator } from "@opentelemetry/sdk-trace";
import type { Acquirer, AcquirerAnswer, AcquirerMessage, AskOptions } from "../acquirer/acquirer.ts";
import type { AttemptedDelivery, AttemptResult } from "../delivery/attempt/attempt.ts";
import type { Delivery } from "../delivery/delivery.ts";
import { ServiceError } from "../errors.ts";
import type { NewNotification } from "../ledger/notifier.ts";
import type { Transaction } from "../ledger/store.ts";

type SpanIds = Pick<SpanContext, "traceId" | "spanId">;

/**
 * The ids of the first span in the trace of what happens to a transaction, or to a notification without one, by
 * itself: its id is the trace id, and the random half of it the span's. Every instance derives the same, after a
 * restart too, so nothing is stored.
 */
function firstSpanOf(id: string): SpanIds {
  const traceId = id.replaceAll("-", "");
  return { traceId, spanId: traceId.slice(16) };
}

/** The same as a parent of spans. */
function asParent(ids: SpanIds, isSampled: boolean): SpanContext {
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

interface TracesParts {
  readonly tracer: Tracer;
  /** The generator that the tracer uses. */
  readonly ids: TraceIds;
  /** Whether a trace without a caller's decision is exported. */
  readonly isSampled: (traceId: string) => boolean;
}

/** The running span: of a request, or of the command that it began. */
interface Current {
  readonly context: Context;
  /** Undefined: of a request, which may begin or report any transaction. */
  readonly transactionId: string | undefined;
}

/** A row that joins a group commit. */
interface Committed {
  readonly id: string;
}

/**
 * The spans of a service. Spans of the time in which a caller waits are in the caller's trace: request → command →
 * acquirer, commit. Later ones, perhaps of another instance, are in a trace whose id is the transaction's: notification
 * → attempt, and Reversals and settlements. The notification and its command link to each other. No span has card data,
 * a key, an amount or a URL's path.
 */
export class Traces {
  readonly #parts: TracesParts;
  readonly #current = new AsyncLocalStorage<Current>();

  constructor(parts: TracesParts) {
    this.#parts = parts;
  }

  /** Begins the span of a request. @param parent of the caller; undefined: it sent none */
  beginRequest(name: string, options: SpanOptions, parent: SpanContext | undefined): Span {
    const context = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
    return this.#parts.tracer.startSpan(name, { ...options, kind: SpanKind.SERVER }, context);
  }

  /** Runs the handler of a request: what it does belongs to the request's span. */
  inRequest(span: Span, handle: () => void): void {
    this.#current.run({ context: trace.setSpan(ROOT_CONTEXT, span), transactionId: undefined }, handle);
  }

  /** Runs a command from its INIT to its end. */
  command(begun: Transaction, run: () => Promise<Transaction>): Promise<Transaction> {
    const { id, command, partnerId, reqId } = begun;
    const attributes = { "paybell.partner": partnerId, "paybell.transaction": id, "paybell.req_id": reqId ?? "" };
    const span = this.#start(command, { attributes }, id);
    const current = { context: trace.setSpan(ROOT_CONTEXT, span), transactionId: id };
    return this.#current.run(current, () =>
      untilSettled(span, run, ({ state, facts: { fields } }) => ({
        "paybell.state": state,
        "paybell.response_code": fields["isoResponseCode"] ?? "",
      })),
    );
  }

  /** Asks the acquirer. @param name of the acquirer */
  ask(name: string, acquirer: Acquirer, message: AcquirerMessage, options: AskOptions): Promise<AcquirerAnswer> {
    const { command, transactionId, repeat } = message;
    const attributes = {
      "paybell.acquirer": name,
      "paybell.transaction": transactionId,
      "paybell.repeat": repeat,
    };
    const span = this.#start(`acquirer ${command}`, { kind: SpanKind.CLIENT, attributes }, transactionId);
    const onSent: AskOptions["onSent"] = ({ host, mti }) => {
      span.setAttributes({ "server.address": host, "paybell.mti": mti });
    };
    return untilSettled(
      span,
      () => acquirer.ask(message, { ...options, onSent }),
      ({ responseCode }) => ({ "paybell.response_code": responseCode }),
    );
  }

  /** A row joins a group commit. @returns what is called once it is durable, or refused */
  commit(batch: string, { id }: Committed): (rows: number, error?: unknown) => void {
    const attributes = { "db.system.name": "postgresql", "paybell.transaction": id };
    const span = this.#start(`commit ${batch}`, { kind: SpanKind.CLIENT, attributes }, id);
    return (rows, error) => {
      span.setAttribute("paybell.commit.rows", rows);
      if (error !== undefined) fail(span, error);
      span.end();
    };
  }

  /** A notification is durable: the first span of the trace to which its attempts belong. */
  notified({ id, transactionId, partnerId, command }: NewNotification): void {
    const current = this.#currentFor(transactionId);
    const by = current && trace.getSpan(current.context);
    const cause = by?.spanContext();
    const { ids, tracer } = this.#parts;
    const first = firstSpanOf(transactionId);
    // A switch may name its transactions itself, and this UUID names no trace.
    if (!isValidTraceId(first.traceId) || !isValidSpanId(first.spanId)) return;
    const options: SpanOptions = {
      kind: SpanKind.PRODUCER,
      links: cause !== undefined && isSampled(cause) ? [{ context: cause }] : [],
      attributes: idsOf({ id, transactionId, partnerId }),
    };
    const begin = () => tracer.startSpan(`notification ${command}`, options, ROOT_CONTEXT);
    const span = ids.using(first, begin);
    span.end();
    if (isSampled(span.spanContext())) by?.addLink({ context: span.spanContext() });
  }

  /** One attempt has ended. */
  attempted(delivery: AttemptedDelivery, { attempt, next }: AttemptResult): void {
    const { id, transactionId, command, attemptsBefore, attemptsMade } = delivery;
    const { startedAtMs, durationMs, url, address, httpStatus, reason } = attempt;
    const attributes: Attributes = {
      ...idsOf(delivery),
      "http.request.method": "POST",
      "paybell.attempt": attemptsBefore + attemptsMade + 1,
      "paybell.outcome": next.kind,
      ...(next.kind === "retry" && { "paybell.retry_in_ms": next.delayMs }),
      ...(URL.canParse(url) && { "server.address": new URL(url).host }),
      ...(address !== null && { "network.peer.address": address }),
      ...(httpStatus !== null && { "http.response.status_code": httpStatus }),
    };
    const options = { kind: SpanKind.CLIENT, startTime: startedAtMs, attributes };
    const span = this.#parts.tracer.startSpan(`attempt ${command}`, options, this.#apart(transactionId ?? id));
    if (reason !== null) span.setAttribute("error.type", reason).setStatus({ code: SpanStatusCode.ERROR });
    span.end(startedAtMs + durationMs);
  }

  #start(name: string, options: SpanOptions, transactionId: string): Span {
    const context = this.#currentFor(transactionId)?.context ?? this.#apart(transactionId);
    return this.#parts.tracer.startSpan(name, options, context);
  }

  /** Work of one transaction may wake that of others, which must not count as a part of the first. */
  #currentFor(transactionId: string): Current | undefined {
    const current = this.#current.getStore();
    return current?.transactionId === undefined || current.transactionId === transactionId ? current : undefined;
  }

  /** In the trace of what happens to the transaction without a caller who waits. */
  #apart(id: string): Context {
    const ids = firstSpanOf(id);
    return trace.setSpanContext(ROOT_CONTEXT, asParent(ids, this.#parts.isSampled(ids.traceId)));
  }
}

function isSampled({ traceFlags }: SpanContext): boolean {
  return (traceFlags & TraceFlags.SAMPLED) !== 0;
}

function idsOf({ id, transactionId, partnerId }: Pick<Delivery, "id" | "transactionId" | "partnerId">): Attributes {
  return {
    "paybell.partner": partnerId,
    "paybell.notification": id,
    ...(transactionId !== null && { "paybell.transaction": transactionId }),
  };
}

/** Ends the span with the work, whose outcome it passes on unchanged. */
async function untilSettled<Result>(
  span: Span,
  work: () => Promise<Result>,
  attributesOf: (result: Result) => Attributes,
): Promise<Result> {
  try {
    const result = await work();
    span.setAttributes(attributesOf(result));
    return result;
  } catch (error) {
    fail(span, error);
    throw error;
  } finally {
    span.end();
  }
}

/** Only the kind of an error: its message may quote what somebody sent. */
function fail(span: Span, error: unknown): void {
  const kind = error instanceof ServiceError ? error.code : error instanceof Error ? error.name : "unknown";
  span.setAttribute("error.type", kind).setStatus({ code: SpanStatusCode.ERROR });
}
