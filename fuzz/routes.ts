import { seeded } from "../faults/random.ts";
import { HttpTestService } from "../packages/server/src/http/service.fixture.ts";
import { unsendableTexts } from "../packages/server/src/input/issues.ts";
import { openApiDocument } from "../scripts/generate/openapi.ts";
import {
  type DocumentedOperation,
  type OpenApiDocument,
  operationsOf,
  resolved,
  type Schema,
} from "../scripts/generate/openapi-document.ts";
import type { FuzzOptions, FuzzResult } from "./fuzz.ts";

/** Statuses with which the service reports an outage; any other from 500 on is a fault of ours. */
const mayFail: ReadonlySet<number> = new Set([503]);
/** Their answers wait, leave piece by piece, or do not end. */
const left: ReadonlySet<string> = new Set(["getMetrics", "watchOverview"]);

/** Its items are refused one by one. */
const refusedInPart = "reportCompletions";

/**
 * Calls every route of the OpenAPI document with what its schemas describe, nearly. None may answer 500, and none may
 * accept text that PostgreSQL would refuse: no database is behind this service to refuse it.
 */
export async function fuzzRoutes({ seed, casesMax, durationMs }: FuzzOptions): Promise<FuzzResult> {
  const random = seeded(seed).next;
  const document = await openApiDocument();
  const routes = operationsOf(document).filter(({ operationId }) => !left.has(operationId));
  const exampleOf = schemaValues(document, random);
  const service = await new HttpTestService({ env: unlimited }).listen();
  const startedMs = performance.now();
  let cases = 0;
  const result = () => ({ target: "routes", cases, blocks: routes.length, kept: routes.length });
  try {
    while (cases < casesMax && performance.now() - startedMs < durationMs) {
      const route = routes[cases % routes.length] as DocumentedOperation;
      const { path, headers, body, isStorable } = requestOf(route, exampleOf, random);
      cases += 1;
      const { status, text } = await service.call(route.method, path, {
        headers: { "content-type": "application/json", ...headers },
        ...(body !== undefined && { body }),
      });
      const isWronglyAccepted = status < 300 && !isStorable && route.operationId !== refusedInPart;
      if (!isWronglyAccepted && (status < 500 || mayFail.has(status))) continue;
      const input = Buffer.from(`${route.method} ${path}\n${JSON.stringify(headers)}\n${body ?? ""}`);
      return { ...result(), failure: { input, error: new Error(`${status} ${text}`) } };
    }
    return result();
  } finally {
    await service.close();
  }
}

const much = "100000000";
const unlimited = {
  PAYBELL_PARTNER_REQUESTS_PER_MINUTE: much,
  PAYBELL_PARTNER_PULLS_PER_MINUTE: much,
  PAYBELL_PARTNER_ASYNC_PER_MINUTE: much,
  PAYBELL_PARTNER_REDELIVERIES_PER_MINUTE: much,
  PAYBELL_ANONYMOUS_PER_MINUTE: much,
};

function requestOf(
  { path, parameters = [], requestBody }: DocumentedOperation,
  exampleOf: (schema: Schema) => unknown,
  random: () => number,
) {
  let filled = path;
  const query: string[] = [];
  const headers: Record<string, string> = {};
  for (const { name, in: place, required = false, schema } of parameters) {
    const text = textOf(exampleOf(schema));
    if (place === "path") filled = filled.replace(`{${name}}`, encoded(text === "" ? "x" : text));
    else if (place === "header") headers[name] = text.replace(/[^\x20-\x7e]/g, "?");
    // A pull that waits would be answered only when something comes.
    else if (name !== "wait" && (required || random() < 0.4)) query.push(`${name}=${encoded(text)}`);
  }
  const schema = requestBody?.content["application/json"]?.schema;
  const body = schema === undefined ? undefined : JSON.stringify(exampleOf(schema));
  const url = query.length === 0 ? filled : `${filled}?${query.join("&")}`;
  const isStorable = !url.includes("%00") && (body === undefined || unsendableTexts(JSON.parse(body)).length === 0);
  return { path: url, headers, body, isStorable };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** A value for a URL. Half of a surrogate pair is written as the bytes that a careless encoder makes of it. */
function encoded(text: string): string {
  return text
    .split(/(\p{Cs})/u)
    .map((part) => (part.isWellFormed() ? encodeURIComponent(part) : "%ED%A0%80"))
    .join("");
}

const odd: readonly unknown[] = [
  ...[null, true, 0, -1, 1.5, 1e308, 2 ** 53, -0, [], {}, [[[]]], { __proto__: 1 }],
  ...["", " ", "\0", "a\0b", "\ud800", "a\ud800", "😀", "'", "%00", "../..", "A".repeat(3_000)],
  ...["4111111111111111", "01a201e6-1bf7-73ed-8aa6-cf91ed000000", "2026-02-30"],
];
const depthMax = 6;
const oddShare = 0.12;

/** Values that a schema describes, and now and then one that it does not. */
function schemaValues({ components: { schemas } }: OpenApiDocument, random: () => number) {
  const one = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)];
  const below = (schema: Schema, depth: number) => exampleOf(schema, depth + 1);
  return (schema: Schema) => exampleOf(schema, 0);

  function exampleOf(given: Schema, depth: number): unknown {
    if (random() < oddShare || depth > depthMax) return one(odd);
    const schema = resolved(given, schemas);
    const choices = (schema["anyOf"] ?? schema["oneOf"]) as readonly Schema[] | undefined;
    if (choices !== undefined) return below(one(choices) ?? {}, depth);
    if (schema["const"] !== undefined) return schema["const"];
    if (Array.isArray(schema["enum"])) return one(schema["enum"]);
    const { type, items = {} } = schema;
    const kind = Array.isArray(type) ? one(type) : type;
    if (kind === "object") return objectOf(schema, depth);
    if (kind === "array")
      return Array.from({ length: Math.floor(random() ** 2 * 6) }, () => below(items as Schema, depth));
    if (kind === "integer" || kind === "number") return Math.floor(random() * 2_000) - 10;
    if (kind === "boolean") return random() < 0.5;
    return kind === "null" ? null : textLike(schema);
  }

  function objectOf({ properties = {}, required = [] }: Schema, depth: number): unknown {
    const wanted = Object.entries(properties as Readonly<Record<string, Schema>>).filter(
      ([name]) => (required as readonly string[]).includes(name) === random() < 0.9 || random() < 0.4,
    );
    const value = Object.fromEntries(wanted.map(([name, schema]) => [name, below(schema, depth)]));
    return random() < 0.05 ? { ...value, [String(one(odd))]: one(odd) } : value;
  }

  function textLike({ format }: Schema): string {
    if (format === "date-time") return "2026-01-31T12:00:00Z";
    if (format === "uuid") return "01a201e6-1bf7-73ed-8aa6-cf91ed000000";
    return String(one(["a", "T1", "150000", "VND", "203.0.113.0/24", "https://partner.example/ipn", one(odd)]));
  }
}
