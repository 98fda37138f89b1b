import { ROOT_CONTEXT } from "@opentelemetry/api";
import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import { type ReadableSpan, TracerProvider } from "@opentelemetry/sdk-trace";
import { afterEach, expect, test } from "vitest";
import { BoundedExport } from "./tracing.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** An exporter that answers when the test says so. */
function exporting(spansMax: number) {
  const told: string[] = [];
  let isClosing = false;
  const exports: { readonly spans: readonly ReadableSpan[]; readonly done: (result: ExportResult) => void }[] = [];
  const processor = new BoundedExport({
    exporter: {
      export(spans, done) {
        exports.push({ spans, done });
        if (isClosing) done({ code: ExportResultCode.SUCCESS });
      },
      shutdown: () => Promise.resolve(),
    },
    spansMax,
    everyMs: 60_000,
    onDropped: (spans, reason) => void told.push(`${reason} ${spans}`),
    onDown: (reason) => void told.push(`down: ${reason}`),
    onUp: () => void told.push("up"),
  });
  const provider = new TracerProvider({ spanProcessors: [processor] });
  const tracer = provider.getTracer("test");
  const span = (name: string) => tracer.startSpan(name, {}, ROOT_CONTEXT).end();
  const flush = async (code: ExportResultCode) => {
    const flushed = processor.forceFlush().catch(() => undefined);
    const { done, spans } = exports.at(-1) ?? expect.fail("nothing was exported");
    done(code === ExportResultCode.SUCCESS ? { code } : { code, error: new Error("refused") });
    await flushed;
    return spans.map(({ name }) => name);
  };
  closing.push(() => {
    isClosing = true;
    return provider.shutdown();
  });
  return { told, span, flush, exports };
}

test("spans beyond the bound are dropped and counted, those on the wire included in the bound", async () => {
  const { told, span, exports } = exporting(2);
  for (const name of ["a", "b"]) span(name);
  // A full batch is on the wire, unanswered.
  expect(exports.map(({ spans }) => spans.length)).toEqual([2]);
  for (const name of ["c", "d"]) span(name);
  expect(told).toEqual(["queue_full 1", "queue_full 1"]);
  exports[0]?.done({ code: ExportResultCode.SUCCESS });
  span("e");
  expect(told).toHaveLength(2);
});

test("an outage is reported once, then its end, and each lost span is counted and makes room", async () => {
  const { told, span, flush } = exporting(3);
  span("a");
  await flush(ExportResultCode.FAILED);
  span("b");
  span("c");
  await flush(ExportResultCode.FAILED);
  expect(told).toEqual(["not_accepted 1", "down: refused", "not_accepted 2"]);
  span("d");
  expect(await flush(ExportResultCode.SUCCESS)).toEqual(["d"]);
  expect(told.slice(3)).toEqual(["up"]);
});
