import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { eventually } from "./service.ts";

/** A span as it came, with its attributes as one object. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Absent: it is the first of its trace. */
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  /** Code 2: an error. */
  readonly status: { readonly code: number };
  readonly attributes: Readonly<Record<string, unknown>>;
}

/** A collector of traces by OTLP over HTTP. */
export interface Collector {
  readonly url: string;
  /** Everything that was sent to it, as it came. */
  readonly bodies: readonly string[];
  readonly headers: readonly Readonly<Record<string, unknown>>[];
  readonly spans: readonly ReceivedSpan[];
  /** The attributes of the sending services. */
  readonly resources: readonly Readonly<Record<string, unknown>>[];
  /** The status of later answers; 200 before. */
  answers(status: number): void;
  /** The first `count` spans that are such ones, once they have come. */
  received(what: string, isOne: (span: ReceivedSpan) => boolean, count?: number): Promise<readonly ReceivedSpan[]>;
  close(): Promise<void>;
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<ReceivedSpan, "attributes"> & { readonly attributes: readonly Attribute[] })[];
    }[];
  }[];
}

/** @param tls key and certificate of its server; absent: it has no TLS */
export async function startCollector(tls?: { readonly key: string; readonly cert: string }): Promise<Collector> {
  const bodies: string[] = [];
  const headers: Readonly<Record<string, unknown>>[] = [];
  const spans: ReceivedSpan[] = [];
  const resources: Readonly<Record<string, unknown>>[] = [];
  let status = 200;
  const receive: RequestListener = async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    bodies.push(body);
    headers.push({ ...request.headers, path: request.url });
    if (status === 200) {
      for (const { resource, scopeSpans } of (JSON.parse(body) as Export).resourceSpans) {
        resources.push(valuesOf(resource.attributes));
        for (const span of scopeSpans.flatMap((scope) => scope.spans)) {
          spans.push({ ...span, attributes: valuesOf(span.attributes) });
        }
      }
    }
    response.writeHead(status, { "content-type": "application/json" }).end("{}");
  };
  const server = tls === undefined ? createServer(receive) : createTlsServer(tls, receive);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}`,
    bodies,
    headers,
    spans,
    resources,
    answers(next) {
      status = next;
    },
    received: (what, isOne, count = 1) =>
      eventually(what, async () => {
        const found = spans.filter(isOne);
        return found.length >= count ? found.slice(0, count) : undefined;
      }),
    async close() {
      const closed = once(server.close(), "close");
      server.closeAllConnections();
      await closed;
    },
  };
}

function valuesOf(attributes: readonly Attribute[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const [kind, plain] = Object.entries(value)[0] ?? [];
      return [key, kind === "intValue" ? Number(plain) : plain];
    }),
  );
}
