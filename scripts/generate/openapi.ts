import { createSecretKey } from "node:crypto";
import swagger from "@fastify/swagger";
import { headerNames, type IpnKind, ipnJsonSchema } from "@paybell/contract";
import type { FastifyInstance } from "fastify";
import { createJsonSchemaTransform, createJsonSchemaTransformObject } from "fastify-type-provider-zod";
import { systemClock } from "../../packages/server/src/clock.ts";
import { readConfig } from "../../packages/server/src/config/config.ts";
import type { HttpDependencies } from "../../packages/server/src/http/dependencies.ts";
import type { HttpListener } from "../../packages/server/src/http/request-guards.ts";
import { createHttp } from "../../packages/server/src/http/server.ts";
import { descriptions } from "../../packages/server/src/input/descriptions.ts";
import { createLog } from "../../packages/server/src/telemetry/log.ts";
import { createMetrics } from "../../packages/server/src/telemetry/metrics.ts";
import { formatted, type GeneratedFile } from "./document.ts";
import { headerMeanings } from "./ipn.ts";
import { type OpenApiDocument, reference, type Schema, schemasUsedBy } from "./openapi-document.ts";
import { samplePost, withExamples } from "./openapi-examples.ts";

/** The document of the routes that a listener has. */
export async function openApiDocument(listener: HttpListener = "all"): Promise<OpenApiDocument> {
  return await withRoutes(listener, documentRoutes, (app) => {
    const document = withRequirements(app.swagger() as unknown as OpenApiDocument);
    return withWebhooks(withExamples(withPlainNames(withoutUnused(document))));
  });
}

/** The operations that the audit records: its actions have their names. */
export async function auditedOperations(): Promise<ReadonlySet<string>> {
  const audited = new Set<string>();
  const collect = (app: FastifyInstance) =>
    app.addHook("onRoute", ({ config, schema }) => {
      const policy = config?.policy;
      const isAudited = policy !== undefined && "audit" in policy && "of" in policy.audit;
      if (isAudited) audited.add((schema as { readonly operationId: string }).operationId);
    });
  return await withRoutes("all", collect, () => audited);
}

async function withRoutes<Result>(
  listener: HttpListener,
  onRoutes: (app: FastifyInstance) => unknown,
  read: (app: FastifyInstance) => Result,
): Promise<Result> {
  const metrics = createMetrics();
  // Only the document is needed, so no route has to work.
  const parts: Partial<HttpDependencies> = {
    config: readConfig({}),
    log: createLog("silent", { write: () => undefined }),
    metrics,
    clock: systemClock,
    endWaits: () => undefined,
    isStopping: () => false,
    sessionKey: createSecretKey(Buffer.alloc(32)),
    documentRoutes: (app) => void onRoutes(app),
  };
  const app = createHttp(parts as HttpDependencies, listener);
  try {
    await app.ready();
    return read(app);
  } finally {
    await app.close();
    metrics.close();
  }
}

/** The OpenAPI document of the whole service, and of what the listener of partners serves. */
export async function openApiReference(): Promise<GeneratedFile[]> {
  const [all, partners] = await Promise.all([openApiDocument(), openApiDocument("partners")]);
  return [
    formatted({ path: "docs/reference/openapi.json", text: JSON.stringify(all, null, 2) }),
    formatted({ path: "docs/partner/openapi.json", text: JSON.stringify(partners, null, 2) }),
  ];
}

const title = "Paybell";
const apiVersion = "1.0.0";
const description =
  "Paybell processes card payment commands for partners and notifies them of each completed one: signed, " +
  "encrypted, never lost. An operation names the key that it requires; a partner's API key works from the partner's " +
  "callingAddresses only. Every error is RFC 9457 `application/problem+json` with a stable " +
  "`code`. An unknown id and another partner's are the same 404.";

/** In the order in which a reader meets them. */
const tags = {
  Commands: "What a partner asks the service to process.",
  Transactions: "What became of it.",
  Statements: "The partner's own books: batches, settlements, and a statement of each day.",
  Notifications: "What was, or should have been, told about it.",
  Self: "How the partner is registered.",
  Callbacks: "What the service POSTs to the partner.",
  Partners: "The operator registers partners, their keys and terminals.",
  Acquirers: "The operator registers the acquirers that terminals belong to.",
  Completions: "The operator's own switch reports what it processed.",
  Operators: "Who the operators are, and who did what.",
  Deliveries: "The operator looks after every partner's notifications.",
  Money: "The operator looks at money, and decides where the acquirer leaves a doubt.",
  Clearing: "The operator compares the acquirers' clearing files with the ledger.",
  Sandbox: "What the sandbox's page does; elsewhere these are not found.",
  Console: "Sign-in of the console's pages.",
  Service: "Whether it works.",
};
/** Operations with an optional body; the transform makes every body required. */
const bodyOptional = new Set(["redeliverNotification", "redeliverAnyNotification", "closePartnersEndpoint", "signIn"]);

/** Collects the routes that are added after it. */
function documentRoutes(app: FastifyInstance): void {
  app.register(swagger, {
    convertConstToEnum: false,
    openapi: {
      openapi: "3.1.0",
      info: { title, version: apiVersion, description, license: { name: "Apache-2.0", identifier: "Apache-2.0" } },
      tags: Object.entries(tags).map(([name, meaning]) => ({ name, description: meaning })),
      components: {
        securitySchemes: {
          partnerKey: { type: "http", scheme: "bearer", description: "The partner's API key" },
          operatorToken: { type: "http", scheme: "bearer", description: "The operator's token" },
        },
      },
    },
    transform: createJsonSchemaTransform({ schemaRegistry: descriptions }),
    transformObject: createJsonSchemaTransformObject({ schemaRegistry: descriptions }),
  });
}

const anyFile = { required: true, content: { "application/octet-stream": { schema: {} } } };

/** The key that a path needs follows from its beginning, as in the server itself. */
function withRequirements(document: OpenApiDocument): OpenApiDocument {
  const paths = Object.entries(document.paths).map(([path, item]) => {
    const scheme = path.startsWith("/operator/") ? "operatorToken" : path.startsWith("/v1/") ? "partnerKey" : undefined;
    const operations = Object.entries(item).map(([method, operation]) => {
      const security = scheme === undefined ? [] : [{ [scheme]: [] }];
      const { operationId = "", requestBody } = operation;
      if (operationId === "receiveClearingFile") return [method, { ...operation, security, requestBody: anyFile }];
      if (requestBody === undefined) return [method, { ...operation, security }];
      const required = !bodyOptional.has(operationId);
      return [method, { ...operation, security, requestBody: { ...requestBody, required } }];
    });
    return [path, Object.fromEntries(operations)];
  });
  return { ...document, paths: Object.fromEntries(paths) };
}

const notAlways: readonly string[] = ["key", "originalTransaction", "outOfOrder"];

/** The two IPNs: what the service POSTs to the partner's callback URL (section 4.1). */
function withWebhooks(document: OpenApiDocument): OpenApiDocument {
  return {
    ...document,
    components: {
      ...document.components,
      schemas: { ...document.components.schemas, CardIpn: ipnSchema("card"), SettlementIpn: ipnSchema("settlement") },
    },
    webhooks: {
      cardIpn: webhook("card", "Completion of a Sale, Void, PreAuth or PreAuth-Complete (section 2.2)."),
      settlementIpn: webhook("settlement", "Completion of a Settlement (section 2.3)."),
    },
  };
}

function ipnSchema(kind: IpnKind): Schema {
  const { $schema: _, ...schema } = ipnJsonSchema(kind) as Record<string, unknown>;
  return { ...schema, examples: [samplePost(kind).ipn] };
}

function webhook(kind: IpnKind, when: string): object {
  const schemaName = kind === "card" ? "CardIpn" : "SettlementIpn";
  const sample = samplePost(kind);
  const data = {
    type: "string",
    description: `The complete IPN JSON object, encrypted (section 5). Opened, it is ${schemaName}.`,
    contentMediaType: "application/json",
    contentSchema: { $ref: `#/components/schemas/${schemaName}` },
  };
  const schema = { type: "object", required: ["data"], properties: { data } };
  return {
    post: {
      operationId: `receive${schemaName}`,
      tags: ["Callbacks"],
      summary: when,
      description: "At least once: deduplicate by the IPN's id. Any 2xx within 15 seconds accepts it.",
      security: [],
      parameters: Object.entries(headerNames).map(([key, name]) => ({
        name,
        in: "header",
        required: !notAlways.includes(key),
        description: headerMeanings[key as keyof typeof headerNames],
        schema: { type: "string" },
        ...(sample.headers[name] !== undefined && { example: sample.headers[name] }),
      })),
      requestBody: { required: true, content: { "application/json": { schema, example: { data: sample.data } } } },
      responses: {
        "2XX": { description: "Accepted. The status line alone counts" },
        default: { description: "Not accepted: sent again by the schedule. Redirects are not followed" },
      },
    },
  };
}

/**
 * The transform names each schema twice, as input and as output; a listener has only some tags and keys. What something
 * refers to stays.
 */
function withoutUnused(document: OpenApiDocument): OpenApiDocument {
  const { schemas } = document.components;
  const used = schemasUsedBy(document.paths, schemas);
  const text = JSON.stringify(document.paths);
  const named = <T>(all: Readonly<Record<string, T>>) =>
    Object.fromEntries(Object.entries(all).filter(([name]) => text.includes(`"${name}"`)));
  const securitySchemes = named(document.components.securitySchemes);
  const kept = Object.fromEntries(Object.entries(schemas).filter(([name]) => used.has(name)));
  return {
    ...document,
    tags: document.tags.filter(({ name }) => name === "Callbacks" || text.includes(`"tags":["${name}"]`)),
    components: { ...document.components, schemas: kept, securitySchemes },
  };
}

/** The transform adds "Input" to schemas of request bodies: the suffix is removed unless the plain name is in use. */
function withPlainNames(document: OpenApiDocument): OpenApiDocument {
  const names = Object.keys(document.components.schemas);
  const plain = (name: string) => {
    const base = name.replace(/Input$/, "");
    return names.includes(base) ? name : base;
  };
  const schemas = Object.entries(document.components.schemas).map(([name, schema]) => [plain(name), schema]);
  const renamed = { ...document, components: { ...document.components, schemas: Object.fromEntries(schemas) } };
  return JSON.parse(
    JSON.stringify(renamed).replace(reference, (_, name: string) => `"#/components/schemas/${plain(name)}"`),
  ) as OpenApiDocument;
}
