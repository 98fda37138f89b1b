import type { OpenApiDocument, Schema } from "../scripts/generate/openapi.ts";

const odd: readonly unknown[] = [
  ...[
    null,
    true,
    0,
    -1,
    1.5,
    1e308,
    2 ** 53,
    "",
    " ",
    "\0",
    "a\0b",
    "\ud800",
    "a\ud800",
    "😀",
    "'",
    "%00",
    "../..",
    "A".repeat(3_000),
  ],
  ...[[], {}, [[[]]], { __proto__: 1 }, "4111111111111111", "01a201e6-1bf7-73ed-8aa6-cf91ed000000", "2026-02-30", -0],
];
const depthMax = 6;
const oddShare = 0.12;

/** Values that a schema describes, and now and then one that it does not. */
export class SchemaValues {
  readonly #schemas: OpenApiDocument["components"]["schemas"];
  readonly #random: () => number;

  constructor({ components }: OpenApiDocument, random: () => number) {
    this.#schemas = components.schemas;
    this.#random = random;
  }

  odd(): unknown {
    return this.#one(odd);
  }

  of(given: Schema, depth = 0): unknown {
    if (this.#random() < oddShare || depth > depthMax) return this.odd();
    const schema = this.#resolved(given);
    const choices = (schema["anyOf"] ?? schema["oneOf"]) as readonly Schema[] | undefined;
    if (choices !== undefined) return this.of(this.#one(choices) ?? {}, depth + 1);
    if (schema["const"] !== undefined) return schema["const"];
    if (Array.isArray(schema["enum"])) return this.#one(schema["enum"]);
    const { type } = schema;
    const kind = Array.isArray(type) ? this.#one(type) : type;
    if (kind === "object") return this.#object(schema, depth);
    if (kind === "array") return this.#array(schema, depth);
    if (kind === "integer" || kind === "number") return Math.floor(this.#random() * 2_000) - 10;
    if (kind === "boolean") return this.#random() < 0.5;
    return kind === "null" ? null : this.#text(schema);
  }

  #object({ properties = {}, required = [] }: Schema, depth: number): unknown {
    const wanted = Object.entries(properties as Readonly<Record<string, Schema>>).filter(
      ([name]) => (required as readonly string[]).includes(name) === this.#random() < 0.9 || this.#random() < 0.4,
    );
    const value = Object.fromEntries(wanted.map(([name, schema]) => [name, this.of(schema, depth + 1)]));
    return this.#random() < 0.05 ? { ...value, [String(this.odd())]: this.odd() } : value;
  }

  #array({ items = {} }: Schema, depth: number): unknown {
    const length = Math.floor(this.#random() ** 2 * 6);
    return Array.from({ length }, () => this.of(items as Schema, depth + 1));
  }

  #text({ format }: Schema): string {
    if (format === "date-time") return "2026-01-31T12:00:00Z";
    if (format === "uuid") return "01a201e6-1bf7-73ed-8aa6-cf91ed000000";
    return String(this.#one(["a", "T1", "150000", "VND", "203.0.113.0/24", "https://partner.example/ipn", this.odd()]));
  }

  #resolved(schema: Schema): Schema {
    const name = /^#\/components\/schemas\/(.+)$/.exec(String(schema["$ref"] ?? ""))?.[1];
    return name === undefined ? schema : (this.#schemas[name] ?? {});
  }

  #one<Item>(items: readonly Item[]): Item | undefined {
    return items[Math.floor(this.#random() * items.length)];
  }
}
