/** The parts of an OpenAPI 3.1 document that are used here. */
export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly webhooks?: Readonly<Record<string, object>>;
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly securitySchemes: Readonly<Record<string, object>>;
  };
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

/** An operation, with its method in capitals. */
export interface DocumentedOperation extends Operation {
  readonly method: string;
  readonly path: string;
}

export function operationsOf({ paths }: OpenApiDocument): readonly DocumentedOperation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
  );
}

type Schemas = OpenApiDocument["components"]["schemas"];

/** A reference to a schema, in JSON. */
export const reference = /"#\/components\/schemas\/([^"]+)"/g;

/** The names of all schemas that a part of the document needs, directly or through others. */
export function schemasUsedBy(part: unknown, schemas: Schemas): ReadonlySet<string> {
  const used = new Set<string>();
  const visit = (value: unknown): void => {
    for (const [, name = ""] of JSON.stringify(value ?? null).matchAll(reference)) {
      if (used.has(name)) continue;
      used.add(name);
      visit(schemas[name]);
    }
  };
  visit(part);
  return used;
}

/** The schema, or the one that it refers to. */
export function resolved(schema: Schema, schemas: Schemas): Schema {
  const name = /^#\/components\/schemas\/(.+)$/.exec(String(schema["$ref"] ?? ""))?.[1];
  return name === undefined ? schema : (schemas[name] ?? {});
}
