import { deliveryVectors } from "../../packages/contract/scripts/vectors/deliveries.ts";
import { type OpenApiDocument, type Operation, resolved, type Schema } from "./openapi-document.ts";

const uuid = "01a1fbc6-485a-77b3-9c6a-200419c2f91f";
/** Of the sample card IPN, whose time is local. */
const instant = "2024-05-31T07:30:00.000Z";

/** The fields of a sample IPN that have a value. */
function sampleTexts(kind: "card" | "settlement"): [name: string, value: string][] {
  return Object.entries(samplePost(kind).ipn).filter(([, value]) => typeof value === "string" && value !== "");
}

/** Values of strings, by the name of their field: those of the sample IPNs, and what these do not have. */
const texts: Readonly<Record<string, string>> = {
  ...Object.fromEntries([...sampleTexts("settlement"), ...sampleTexts("card")]),
  acquirer: "bank",
  action: "partner.update",
  actor: "Ada",
  address: "203.0.113.7",
  answer: "00",
  apiKey: "pb_0f5c9d",
  callbackAddresse: "198.51.100.0/24",
  callBackUrl: "https://shop.example/ipn",
  callingAddresse: "203.0.113.0/24",
  cardHolder: "A CARDHOLDER",
  case: "duplicate",
  cipher: "aes-256-gcm",
  code: "invalid_amount",
  command: "SALE",
  documentation: "/docs/reference/errors#invalid_amount",
  egressAddresse: "192.0.2.10",
  encoding: "base64",
  expDate: "2812",
  externalId: "switch-1024",
  field: "amount",
  host: "192.0.2.20:5000",
  id: uuid,
  instanceId: "pod-1",
  kind: "parked",
  lastFour: "1111",
  lastReason: "timeout",
  minor: "150000",
  name: "Shop",
  netAmount: "150000",
  notificationId: uuid,
  originalId: uuid,
  partnerId: uuid,
  partnerName: "Shop",
  proposedBy: "Ada",
  reason: "The acquirer confirmed it by mail",
  refundTotalMinor: "0",
  originalReqId: "5c3f0c9e-52a4-4b0e-9f0e-1d5a8f2f7a01",
  responseCode: "00",
  role: "operator",
  saleTotalMinor: "150000",
  settlementDate: "0531",
  target: "https://shop.example",
  timeZone: "Asia/Ho_Chi_Minh",
  token: "tok_approve",
  totalMinor: "150000",
  transactionId: uuid,
  url: "https://shop.example/ipn",
  voidTotalMinor: "0",
};
/** Objects whose fields depend on each other, by the name of their field. */
const objects: Readonly<Record<string, unknown>> = {
  card: { token: "tok_approve", number: "411111******1111", swipeType: "C", aid: "A0000000031010" },
};
/** One of several fields that may be missing, of which a request must have one. */
const neededAnyway: ReadonlySet<string> = new Set(["originalReqId"]);
/** For a string with a pattern and no such name. */
const forms = ["1", "150000", "20240531143000", "1111", uuid];

/** The values that a reader expects to see, where the schema has it. */
const usual: readonly unknown[] = ["SUCCESS", "accepted"];

/** Adds an example to each body, answer and required parameter: its schema accepts it, and it is always the same. */
export function withExamples(document: OpenApiDocument): OpenApiDocument {
  const { schemas } = document.components;
  const paths = Object.entries(document.paths).map(([path, item]) => [
    path,
    Object.fromEntries(Object.entries(item).map(([method, operation]) => [method, exampled(operation, schemas)])),
  ]);
  return { ...document, paths: Object.fromEntries(paths) };
}

type Schemas = OpenApiDocument["components"]["schemas"];

function exampled(operation: Operation, schemas: Schemas): Operation {
  const { parameters, requestBody, responses } = operation;
  const values = new Values(schemas);
  const content = (all: NonNullable<Operation["requestBody"]>["content"], isWhole: boolean) =>
    Object.fromEntries(
      Object.entries(all).map(([type, media]) => {
        if (type !== "application/json" || media.schema === undefined) return [type, media];
        const kinds = values.kindsOf(media.schema);
        if (kinds === undefined) return [type, { ...media, example: values.of(media.schema, "", isWhole) }];
        return [type, { ...media, examples: Object.fromEntries(kinds) }];
      }),
    );
  const answers = Object.entries(responses).map(([status, answer]) => {
    const isSuccess = status.startsWith("2") && answer.content !== undefined;
    return [status, isSuccess ? { ...answer, content: content(answer.content, true) } : answer];
  });
  return {
    ...operation,
    ...(parameters !== undefined && {
      parameters: parameters.map((one) =>
        one.required === true ? { ...one, example: values.of(one.schema, one.name, true) } : one,
      ),
    }),
    ...(requestBody !== undefined && { requestBody: { ...requestBody, content: content(requestBody.content, false) } }),
    responses: Object.fromEntries(answers),
  };
}

class Values {
  readonly #schemas: Schemas;

  constructor(schemas: Schemas) {
    this.#schemas = schemas;
  }

  /** An example of each command, if the schema is that of a command; otherwise undefined. */
  kindsOf(given: Schema): [command: string, { value: unknown }][] | undefined {
    const choices = (resolved(given, this.#schemas)["oneOf"] ?? []) as readonly Schema[];
    const values = choices.map((choice) => this.of(choice, "", false)) as { command?: string }[];
    return values.length < 2 || values.some(({ command }) => command === undefined)
      ? undefined
      : values.map((value) => [String(value.command), { value }]);
  }

  /** @param isWhole with the fields that may be missing, too */
  of(given: Schema, name: string, isWhole: boolean): unknown {
    const schema = resolved(given, this.#schemas);
    const parts = schema["allOf"] as readonly Schema[] | undefined;
    if (parts !== undefined) return Object.assign({}, ...parts.map((part) => this.of(part, name, isWhole)));
    const choices = (schema["anyOf"] ?? schema["oneOf"]) as readonly Schema[] | undefined;
    if (choices !== undefined) return this.of(choices.find(({ type }) => type !== "null") ?? {}, name, isWhole);
    if (schema["const"] !== undefined) return schema["const"];
    const values = schema["enum"] as readonly unknown[] | undefined;
    if (values !== undefined) return values.find((value) => usual.includes(value)) ?? values[0];
    const { type, items } = schema;
    const kind: unknown = Array.isArray(type) ? type[0] : type;
    if (kind === "object") return objects[name] ?? this.#object(schema, isWhole);
    if (kind === "array") return [this.of((items ?? {}) as Schema, name.replace(/s$/, ""), isWhole)];
    if (kind === "integer" || kind === "number") return Math.max(1, Number(schema["minimum"] ?? 1));
    if (kind === "boolean") return true;
    return kind === "string" ? text(schema, name) : null;
  }

  #object({ properties = {}, required = [] }: Schema, isWhole: boolean): unknown {
    const shown = Object.entries(properties as Readonly<Record<string, Schema>>).filter(
      ([name]) => isWhole || (required as readonly string[]).includes(name) || neededAnyway.has(name),
    );
    return Object.fromEntries(shown.map(([name, schema]) => [name, this.of(schema, name, isWhole)]));
  }
}

function text({ format, pattern }: Schema, name: string): string {
  if (format === "date-time") return instant;
  if (format === "date") return instant.slice(0, 10);
  if (format === "uuid") return uuid;
  const known = texts[name] ?? "text";
  if (pattern === undefined) return known;
  const form = new RegExp(String(pattern));
  return [known, ...forms].find((one) => form.test(one)) ?? known;
}

/** A POST of the test vectors: what is sent, and the IPN inside. */
export function samplePost(kind: "card" | "settlement"): {
  readonly data: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly ipn: object;
} {
  const vector = deliveryVectors().find((one) => one.expect === "accept" && one.kind === kind);
  if (vector === undefined) throw new Error(`the vectors have no IPN of the kind ${kind}`);
  const { data } = JSON.parse(vector.body) as { readonly data: string };
  return { data, headers: vector.headers, ipn: vector.ipn as object };
}
