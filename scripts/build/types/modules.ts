import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type ESTree, parseSync } from "rolldown/utils";

/** One top-level declaration of a module; the overloads of a function are several of one name. */
export interface Declaration {
  readonly name: string;
  readonly kind: "type" | "value";
  /** The comment that documents it, or nothing. */
  readonly doc: string;
  /** As emitted, without `export` and `declare`. */
  readonly text: string;
  /** Names of its module that it refers to. */
  readonly uses: ReadonlySet<string>;
}

/** Where a name comes from: `from` is a path for a file beside, else a package's specifier. */
export interface Origin {
  readonly from: string;
  readonly name: string;
}

/** `local` is declared or imported by the module itself. */
type Exported = ({ readonly local: string } | Origin) & { readonly typeOnly: boolean };

/** An emitted .d.ts file. */
export interface TypeModule {
  readonly path: string;
  readonly declarations: readonly Declaration[];
  readonly imports: ReadonlyMap<string, Origin>;
  readonly exports: ReadonlyMap<string, Exported>;
  /** Modules all of whose exports are exported again. */
  readonly stars: readonly { readonly from: string; readonly typeOnly: boolean }[];
}

/** Reads a .d.ts file that TypeScript emitted. Throws at what this reader does not know, rather than dropping it. */
export function readTypeModule(path: string): TypeModule {
  const text = readFileSync(path, "utf8");
  const { program, comments, errors } = parseSync(path, text, { lang: "dts" });
  if (errors.length > 0) throw new Error(`${path} cannot be read: ${errors.map(({ message }) => message).join(", ")}`);
  if (comments.some(({ value }) => /^\/\s*</.test(value))) throw new Error(`${path}: a directive cannot be moved`);
  const docOf = ({ start }: ESTree.Node): string => {
    const before = comments.findLast(({ end }) => end <= start && text.slice(end, start).trim() === "");
    return before?.type === "Block" && before.value.startsWith("*") ? `/*${before.value}*/` : "";
  };
  const declarations: Declaration[] = [];
  const imports = new Map<string, Origin>();
  const exports = new Map<string, Exported>();
  const stars: { from: string; typeOnly: boolean }[] = [];
  for (const node of program.body) {
    if (node.type === "ImportDeclaration") {
      for (const [name, origin] of importsOf(path, node)) imports.set(name, origin);
    } else if (node.type === "ExportAllDeclaration") {
      stars.push({ from: targetOf(path, node.source), typeOnly: node.exportKind === "type" });
    } else if (node.type === "ExportNamedDeclaration" && node.declaration === null) {
      for (const [name, exported] of exportsOf(path, node)) exports.set(name, exported);
    } else {
      const exported = node.type === "ExportNamedDeclaration" ? node.declaration : null;
      const declaration = declarationOf(exported ?? node, text, docOf(node));
      declarations.push(declaration);
      if (exported !== null) exports.set(declaration.name, { local: declaration.name, typeOnly: false });
    }
  }
  return { path, declarations, imports, exports, stars };
}

function targetOf(path: string, { value }: ESTree.StringLiteral): string {
  return value.startsWith(".") ? join(dirname(path), value.replace(/\.[jt]s$/, ".d.ts")) : value;
}

function importsOf(path: string, { specifiers, source }: ESTree.ImportDeclaration): [name: string, Origin][] {
  return specifiers.map((one) => {
    if (one.type !== "ImportSpecifier") throw new Error(`${path}: only imports by name are read`);
    return [one.local.name, { from: targetOf(path, source), name: nameOf(one.imported) }];
  });
}

function exportsOf(path: string, node: ESTree.ExportNamedDeclaration): [name: string, Exported][] {
  return node.specifiers.map((one) => {
    const typeOnly = node.exportKind === "type" || one.exportKind === "type";
    const name = nameOf(one.local);
    if (node.source === null) return [nameOf(one.exported), { local: name, typeOnly }];
    return [nameOf(one.exported), { from: targetOf(path, node.source), name, typeOnly }];
  });
}

function declarationOf(node: ESTree.Node, text: string, doc: string): Declaration {
  return {
    name: nameOfDeclaration(node),
    kind: node.type === "TSInterfaceDeclaration" || node.type === "TSTypeAliasDeclaration" ? "type" : "value",
    doc,
    text: text.slice(node.start, node.end).replace(/^declare\s+/, ""),
    uses: usesOf(node),
  };
}

function nameOfDeclaration(node: ESTree.Node): string {
  const id = node.type === "VariableDeclaration" ? node.declarations[0]?.id : "id" in node ? node.id : undefined;
  const isOne = node.type !== "VariableDeclaration" || node.declarations.length === 1;
  if (isOne && id?.type === "Identifier") return id.name;
  throw new Error(`a ${node.type} is no declaration that can be moved`);
}

function nameOf(node: ESTree.ModuleExportName): string {
  return node.type === "Literal" ? node.value : node.name;
}

/** The names that stand where a type, or the value of a `typeof` or a heritage, is named. */
function usesOf(declaration: ESTree.Node): Set<string> {
  const uses = new Set<string>();
  const parameters = new Set<string>();
  const visit = (value: unknown): void => {
    if (Object(value) !== value) return;
    const node = value as ESTree.Node;
    if (node.type === "TSTypeParameter") parameters.add(node.name.name);
    if (node.type === "TSImportType") throw new Error("an import() type cannot be moved: name it by an import");
    if (node.type === "TSTypeReference") addLeftmost(node.typeName);
    if (node.type === "TSTypeQuery" && node.exprName.type !== "TSImportType") addLeftmost(node.exprName);
    if (node.type === "TSInterfaceHeritage" || node.type === "TSClassImplements") addLeftmost(node.expression);
    if (node.type === "ClassDeclaration" && node.superClass !== null) addLeftmost(node.superClass);
    for (const [key, child] of Object.entries(node)) if (key !== "parent") visit(child);
  };
  const addLeftmost = (node: ESTree.Node): void => {
    if (node.type === "Identifier") uses.add(node.name);
    else if (node.type === "TSQualifiedName") addLeftmost(node.left);
    else if (node.type === "MemberExpression") addLeftmost(node.object);
  };
  visit(declaration);
  for (const name of parameters) uses.delete(name);
  return uses;
}
