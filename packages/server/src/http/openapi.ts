import swagger from "@fastify/swagger";
import { contractVersion, headerNames, type IpnKind, ipnJsonSchema } from "@paybell/contract";
import type { FastifyInstance } from "fastify";
import { createJsonSchemaTransform, createJsonSchemaTransformObject } from "fastify-type-provider-zod";
import { descriptions } from "../input/descriptions.ts";

interface Operation {
  readonly operationId?: string;
  readonly requestBody?: object;
}

/** The parts of an OpenAPI 3.1 document that are used here. */
interface Document {
  readonly paths?: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly webhooks?: Readonly<Record<string, object>>;
  readonly components?: { readonly schemas?: Readonly<Record<string, object>> };
}

const title = "Paybell";
const description =
  "Paybell processes card payment commands for partners and notifies them of each completed one: signed, " +
  "encrypted, never lost. The partner API requires the partner's API key, from the partner's callingAddresses; the " +
  "operator API requires the operator's token. Every error is RFC 9457 `application/problem+json` with a stable " +
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

/** Collects the routes that are added after it into an OpenAPI 3.1 document. */
export function documentRoutes(app: FastifyInstance, version: string): void {
  app.register(swagger, {
    convertConstToEnum: false,
    openapi: {
      openapi: "3.1.0",
      info: { title, version, description, license: { name: "Apache-2.0", identifier: "Apache-2.0" } },
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

/** The document of all routes, as JSON text: made once. */
export function openApiText(app: FastifyInstance): string {
  const document = app.swagger() as unknown as Document;
  return JSON.stringify(withWebhooks(withPlainNames(withoutUnused(withRequirements(document)))));
}

const anyFile = { required: true, content: { "application/octet-stream": { schema: {} } } };

/** The key that a path needs follows from its beginning, as in the server itself. */
function withRequirements(document: Document): Document {
  const paths = Object.entries(document.paths ?? {}).map(([path, item]) => {
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

const headerMeanings: Readonly<Record<keyof typeof headerNames, string>> = {
  id: "The notification's id, the same at every attempt",
  timestamp: "When this attempt was signed, in seconds since 1970",
  signature: "Standard Webhooks v1 over the body as sent; two during a rotation, separated by a space",
  attempt: "1 at the first attempt",
  contract: `The version of the notification contract: ${contractVersion}`,
  key: "The id of the key version that sealed the body",
  command: "The precise command, such as PREAUTH_COMPLETE",
  originalTransaction: "The id of the transaction that this one voids or completes",
  outOfOrder: "1 when an earlier notification of the same chain is still on its way",
};
const notAlways: readonly string[] = ["key", "originalTransaction", "outOfOrder"];

/** The two IPNs: what the service POSTs to the partner's callback URL (section 4.1). */
function withWebhooks(document: Document): Document {
  return {
    ...document,
    components: {
      ...document.components,
      schemas: { ...document.components?.schemas, CardIpn: ipnSchema("card"), SettlementIpn: ipnSchema("settlement") },
    },
    webhooks: {
      cardIpn: webhook("CardIpn", "Completion of a Sale, Void, PreAuth or PreAuth-Complete (section 2.2)."),
      settlementIpn: webhook("SettlementIpn", "Completion of a Settlement (section 2.3)."),
    },
  };
}

function ipnSchema(kind: IpnKind): object {
  const { $schema: _, ...schema } = ipnJsonSchema(kind) as Record<string, unknown>;
  return schema;
}

function webhook(schemaName: string, when: string): object {
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
      })),
      requestBody: { required: true, content: { "application/json": { schema } } },
      responses: {
        "2XX": { description: "Accepted. The status line alone counts" },
        default: { description: "Not accepted: sent again by the schedule. Redirects are not followed" },
      },
    },
  };
}

/** The transform names each schema twice, as input and as output. Only what something refers to stays. */
function withoutUnused(document: Document): Document {
  const schemas = document.components?.schemas ?? {};
  const used = new Set<string>();
  const visit = (value: unknown): void => {
    for (const [, name = ""] of JSON.stringify(value ?? null).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      if (used.has(name)) continue;
      used.add(name);
      visit(schemas[name]);
    }
  };
  visit(document.paths);
  const kept = Object.fromEntries(Object.entries(schemas).filter(([name]) => used.has(name)));
  return { ...document, components: { ...document.components, schemas: kept } };
}

/** The transform adds "Input" to schemas of request bodies: the suffix is removed unless the plain name is in use. */
function withPlainNames(document: Document): Document {
  const names = Object.keys(document.components?.schemas ?? {});
  const plain = (name: string) => {
    const base = name.replace(/Input$/, "");
    return names.includes(base) ? name : base;
  };
  const schemas = Object.entries(document.components?.schemas ?? {}).map(([name, schema]) => [plain(name), schema]);
  const renamed = { ...document, components: { ...document.components, schemas: Object.fromEntries(schemas) } };
  const reference = /"#\/components\/schemas\/([^"]+)"/g;
  return JSON.parse(
    JSON.stringify(renamed).replace(reference, (_, name: string) => `"#/components/schemas/${plain(name)}"`),
  ) as Document;
}
