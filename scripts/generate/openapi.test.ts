import { cardIpnFields, commands, defaultSigning, headerNames } from "@paybell/contract";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { requestProblems } from "../../packages/server/src/commands/requests/check.ts";
import type { CommandRequest } from "../../packages/server/src/commands/requests/request.ts";
import { type ErrorCode, errors } from "../../packages/server/src/errors.ts";
import { openApiDocument } from "./openapi.ts";

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly security: readonly Record<string, unknown>[];
  readonly parameters?: readonly { name: string; in: string; required?: boolean; schema: object }[];
  readonly requestBody?: { readonly required: boolean; readonly content: Record<string, { schema: Schema }> };
  readonly responses: Record<
    string,
    { readonly description: string; readonly content: Record<string, { schema: Schema }> }
  >;
}
interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly properties?: Record<string, Schema>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
  readonly maxLength?: number;
  readonly description?: string;
}
interface Document {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Record<string, Record<string, Operation>>;
  readonly webhooks: Record<string, { readonly post: Operation }>;
  readonly components: { readonly schemas: Record<string, Schema>; readonly securitySchemes: object };
}

const document = (await openApiDocument()) as unknown as Document;
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ ...operation, path, method })),
);

function resolve(schema: Schema | undefined): Schema {
  if (schema?.$ref === undefined) return schema ?? {};
  return resolve(document.components.schemas[schema.$ref.replace("#/components/schemas/", "")]);
}

/** A media type, or a parameter, with its schema and its example, or one of each kind. */
interface Exampled {
  readonly schema: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

const ajv = new Ajv2020({ strict: false, validateFormats: false });
ajv.addSchema({ components: document.components }, "document");

/** The reasons why the schema of an example refuses it. */
function objections({ schema, example, examples }: Exampled): readonly unknown[] {
  const isValid = ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/')));
  const all = examples === undefined ? [example] : Object.values(examples).map(({ value }) => value);
  return all.flatMap((one) => (isValid(one) ? [] : (isValid.errors ?? [])));
}

describe("the examples of the OpenAPI document", () => {
  test("are in every operation: of each body, each answer in JSON and each required parameter", () => {
    const refused: unknown[] = [];
    for (const { operationId, parameters = [], requestBody, responses } of operations) {
      const answers = Object.entries(responses).filter(([status]) => status.startsWith("2"));
      const bodies = [requestBody, ...answers.map(([, answer]) => answer)].flatMap((one) =>
        Object.entries(one?.content ?? {}).filter(([type]) => type === "application/json"),
      );
      const media = [...bodies.map(([, one]) => one), ...parameters.filter(({ required }) => required === true)];
      for (const one of media as Exampled[]) {
        refused.push(
          ...[objections(one)].filter((why) => why.length > 0).map((why) => [operationId, one.example, why]),
        );
      }
    }
    expect(refused).toEqual([]);
  });

  test("have one of each command, which the service accepts", () => {
    const operation = operations.find(({ operationId }) => operationId === "runCommand");
    const { examples = {} } = (operation?.requestBody?.content["application/json"] ?? {}) as Exampled;
    expect(Object.keys(examples).sort()).toEqual([...commands].sort());
    for (const [command, { value }] of Object.entries(examples)) {
      expect(requestProblems(value as CommandRequest, { signing: defaultSigning }), command).toEqual([]);
    }
  });

  test("are in both IPNs, as sent and decrypted", () => {
    for (const [name, kind] of [
      ["CardIpn", "cardIpn"],
      ["SettlementIpn", "settlementIpn"],
    ] as const) {
      const { post } = document.webhooks[kind] ?? {};
      const [ipn] = (document.components.schemas[name] as { readonly examples?: readonly unknown[] }).examples ?? [];
      expect(objections({ schema: { $ref: `#/components/schemas/${name}` }, example: ipn })).toEqual([]);
      const sent = post?.requestBody?.content["application/json"] as Exampled;
      expect(objections(sent)).toEqual([]);
      expect(sent.example).toEqual({ data: expect.stringMatching(/^[\w+/=]{100,}$/) });
    }
  });
});

describe("the OpenAPI document", () => {
  test("is of version 3.1 and names the routes of every listener", () => {
    expect(document.openapi).toBe("3.1.0");
    expect(document.info.title).toBe("Paybell");
    const starts = new Set(
      operations.map(({ path }) => path.split("/", path.startsWith("/operator") ? 3 : 2).join("/")),
    );
    expect([...starts].sort()).toEqual(["/console", "/healthz", "/metrics", "/operator/v1", "/readyz", "/v1"]);
    expect(operations.length).toBeGreaterThan(110);
  });

  test("every reference leads to a component, and every component is used", () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, reference]) => reference);
    expect(references.length).toBeGreaterThan(50);
    const names = Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`);
    expect(new Set(references)).toEqual(new Set(names));
  });

  test("holds nothing of OpenAPI 3.0 nor of zod", () => {
    const text = JSON.stringify(document);
    for (const foreign of ['"nullable"', '"$schema"', "__SCHEMA__", '"x-response-description"', '"$id"']) {
      expect(text).not.toContain(foreign);
    }
  });

  test("every operation has an id of its own, a summary, a tag, and all of its path's parameters", () => {
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
    for (const { path, summary, tags, parameters = [] } of operations) {
      expect(summary, path).toMatch(/^[A-Z].*[^.]$/);
      expect(
        document.tags.map(({ name }) => name),
        path,
      ).toContain(tags[0]);
      const named = parameters.filter((parameter) => parameter.in === "path");
      const expected = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      expect(named.map(({ name }) => name)).toEqual(expected);
      for (const { required, schema } of named) expect({ required, schema }).toMatchObject({ required: true });
    }
  });

  test("the partner's paths take the partner's key, the operator's the operator's, the others none", () => {
    for (const { path, security } of operations) {
      const scheme = path.startsWith("/v1/")
        ? "partnerKey"
        : path.startsWith("/operator/")
          ? "operatorToken"
          : undefined;
      expect(security, path).toEqual(scheme === undefined ? [] : [{ [scheme]: [] }]);
      if (scheme !== undefined) expect(document.components.securitySchemes).toHaveProperty(scheme);
    }
  });

  test("every error is a problem that names its codes, each under its own status", () => {
    for (const { path, responses } of operations) {
      expect(responses, path).toHaveProperty("500");
      for (const [status, { description, content }] of Object.entries(responses)) {
        if (status.startsWith("2") || content["application/problem+json"] === undefined) continue;
        expect(Object.keys(content)).toEqual(["application/problem+json"]);
        expect(content["application/problem+json"].schema).toEqual({ $ref: "#/components/schemas/Problem" });
        const codes = [...description.matchAll(/`(\w+)`:/g)].map(([, code]) => code as ErrorCode);
        expect(codes.length, `${path} ${status}`).toBeGreaterThan(0);
        for (const code of codes) expect(String(errors[code].status)).toBe(status);
      }
    }
  });

  test("every route behind a key may answer 401, every route with a body 400, 413 and 415", () => {
    for (const { path, security, requestBody, responses } of operations) {
      if (security.length > 0) expect(Object.keys(responses), path).toContain("401");
      if (requestBody !== undefined && "application/json" in requestBody.content)
        expect(Object.keys(responses), path).toEqual(expect.arrayContaining(["400", "413", "415"]));
    }
  });

  test("a body is required unless all of its fields are optional", () => {
    const optional = operations.filter(({ requestBody }) => requestBody?.required === false);
    expect(optional.map(({ operationId }) => operationId).sort()).toEqual([
      "closePartnersEndpoint",
      "redeliverAnyNotification",
      "redeliverNotification",
      "signIn",
    ]);
  });

  test("a command is one of eight, each with exactly its fields, their lengths and their meanings", () => {
    const operation = operations.find(({ operationId }) => operationId === "runCommand");
    const command = resolve(operation?.requestBody?.content["application/json"]?.schema);
    const variants = (command.oneOf ?? command.anyOf ?? []).map(resolve);
    expect(variants).toHaveLength(commands.length);
    const sale = variants.find(({ properties }) => JSON.stringify(properties?.["command"]).includes('"SALE"'));
    expect(sale).toMatchObject({
      type: "object",
      additionalProperties: false,
      required: expect.arrayContaining(["command", "reqId", "amount", "currency", "tid", "mid", "card"]),
      properties: { tid: { type: "string", maxLength: 16, description: expect.stringContaining("Terminal") } },
    });
    expect(resolve(sale?.properties?.["card"]).required).toEqual(["token"]);
  });

  test("the one header that a call may carry is documented with its call", () => {
    const headers = operations.flatMap(({ operationId, parameters = [] }) =>
      parameters
        .filter((parameter) => parameter.in === "header")
        .map(({ name, required }) => [operationId, name, required]),
    );
    expect(headers).toEqual([["runCommand", "prefer", false]]);
  });

  test("the two IPNs are webhooks, with every header and the schema of what is sealed", () => {
    expect(Object.keys(document.webhooks)).toEqual(["cardIpn", "settlementIpn"]);
    for (const { post } of Object.values(document.webhooks)) {
      expect(post.parameters?.map(({ name }) => name)).toEqual(Object.values(headerNames));
      expect(post.requestBody?.content["application/json"]?.schema).toMatchObject({ required: ["data"] });
      expect(Object.keys(post.responses)).toContain("2XX");
    }
    expect(Object.keys(document.components.schemas["CardIpn"]?.properties ?? {})).toEqual(
      cardIpnFields.map(({ name }) => name),
    );
  });
});
