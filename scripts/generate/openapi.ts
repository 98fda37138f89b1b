import { createSecretKey } from "node:crypto";
import { systemClock } from "../../packages/server/src/clock.ts";
import { readConfig } from "../../packages/server/src/config.ts";
import type { HttpDependencies } from "../../packages/server/src/http/dependencies.ts";
import { createHttp } from "../../packages/server/src/http/server.ts";
import { createLog } from "../../packages/server/src/log.ts";
import { createMetrics } from "../../packages/server/src/metrics.ts";
import type { GeneratedFile } from "./document.ts";
import { formatted } from "./formatted.ts";

/** The parts of an OpenAPI document that are used here. */
export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: "path" | "query" | "header";
    readonly required?: boolean;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Content }>>;
}

type Content = Readonly<Record<string, { readonly schema: Schema }>>;

/** JSON Schema 2020-12. */
export type Schema = Readonly<Record<string, unknown>>;

/** The document as the service itself serves it. */
export async function openApiDocument(): Promise<OpenApiDocument> {
  const metrics = createMetrics();
  const clock = systemClock;
  const log = createLog("silent", { write: () => undefined });
  // Only the document is needed, so no route has to work.
  const sessionKey = createSecretKey(Buffer.alloc(32));
  const parts: Partial<HttpDependencies> = {
    config: readConfig({}),
    log,
    metrics,
    clock,
    endWaits: () => undefined,
    isStopping: () => false,
    sessionKey,
  };
  const app = createHttp(parts as HttpDependencies);
  try {
    const answer = await app.inject("/openapi.json");
    return answer.json<OpenApiDocument>();
  } finally {
    await app.close();
    metrics.close();
  }
}

/** The OpenAPI document, for generating a client without a running service. */
export async function openApiReference(): Promise<GeneratedFile> {
  const document = await openApiDocument();
  return formatted({ path: "docs/reference/openapi.json", text: JSON.stringify(document, null, 2) });
}
