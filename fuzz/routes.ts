import { HttpTestService } from "../packages/server/src/http/service.fixture.ts";
import { type OpenApiDocument, type Operation, openApiDocument } from "../scripts/generate/openapi.ts";
import type { FuzzOptions, FuzzResult } from "./fuzz.ts";
import { seeded } from "./mutate.ts";
import { SchemaValues } from "./schema-values.ts";

interface Route extends Operation {
  readonly method: string;
  readonly path: string;
}

/** Of these the service says itself that it cannot go on; anything else of 500 and more is a fault of ours. */
const mayFail: ReadonlySet<number> = new Set([503]);
/** Their answers wait, leave piece by piece, or do not end. */
const left: ReadonlySet<string> = new Set(["getMetrics", "watchOverview"]);

/** Calls every route of the OpenAPI document with what its schemas describe, nearly. None may answer 500. */
export async function fuzzRoutes({ seed, casesMax, durationMs }: FuzzOptions): Promise<FuzzResult> {
  const random = seeded(seed);
  const document = await openApiDocument();
  const routes = routesOf(document);
  const values = new SchemaValues(document, random);
  const service = await new HttpTestService({ env: unlimited }).listen();
  const startedMs = performance.now();
  let cases = 0;
  const result = () => ({ target: "routes", cases, blocks: routes.length, kept: routes.length });
  try {
    while (cases < casesMax && performance.now() - startedMs < durationMs) {
      const route = routes[cases % routes.length] as Route;
      const { path, body } = requestOf(route, values, random);
      cases += 1;
      const { status, text } = await service.call(route.method, path, {
        headers: { "content-type": "application/json" },
        ...(body !== undefined && { body }),
      });
      if (status < 500 || mayFail.has(status)) continue;
      const input = Buffer.from(`${route.method} ${path}\n${body ?? ""}`);
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

function routesOf({ paths }: OpenApiDocument): readonly Route[] {
  return Object.entries(paths)
    .flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
    )
    .filter(({ operationId }) => !left.has(operationId));
}

function requestOf({ path, parameters = [], requestBody }: Route, values: SchemaValues, random: () => number) {
  let filled = path;
  const query = new URLSearchParams();
  for (const { name, in: place, required = false, schema } of parameters) {
    const text = textOf(values.of(schema));
    if (place === "path") filled = filled.replace(`{${name}}`, encodeURIComponent(text === "" ? "x" : text));
    // A pull that waits would be answered only when something comes.
    else if (name !== "wait" && (required || random() < 0.4)) query.append(name, text);
  }
  const schema = requestBody?.content["application/json"]?.schema;
  const body = schema === undefined ? undefined : JSON.stringify(values.of(schema));
  return { path: query.size === 0 ? filled : `${filled}?${query}`, body };
}

/** A value for a URL: without halves of characters. */
function textOf(value: unknown): string {
  return (typeof value === "string" ? value : (JSON.stringify(value) ?? "")).toWellFormed();
}
