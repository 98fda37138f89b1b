import {
  type ImportClause,
  isCallExpression,
  isExportDeclaration,
  isIdentifier,
  isImportDeclaration,
  isImportTypeNode,
  isLiteralTypeNode,
  isNamedExports,
  isNamedImports,
  type Node,
  SyntaxKind,
} from "typescript/unstable/ast";
import { isPlainText, lineOf, nodesOf, type Source } from "../sources/program.ts";

/** One place at which a file asks for another module. */
export interface ImportStatement {
  readonly line: number;
  /** Absent when the module is computed at run time, so that nobody can say here which one it is. */
  readonly specifier: string | undefined;
  /** `type`: gone at run time. `dynamic`: `import()`, at the moment it is reached. `static`: with the file itself. */
  readonly kind: "static" | "dynamic" | "type";
  /** The names whose values are imported; `*` when it is all of them. */
  readonly valueNames: readonly string[];
}

export function readImports(source: Source): ImportStatement[] {
  const found: ImportStatement[] = [];
  for (const node of nodesOf(source.tree)) {
    const statement = readImport(node);
    if (statement !== undefined) found.push({ line: lineOf(source, node), ...statement });
  }
  return found;
}

function readImport(node: Node): Omit<ImportStatement, "line"> | undefined {
  if (isImportDeclaration(node)) {
    const valueNames = node.importClause === undefined ? ["*"] : importedValues(node.importClause);
    return { specifier: textOf(node.moduleSpecifier), kind: valueNames.length > 0 ? "static" : "type", valueNames };
  }
  if (isExportDeclaration(node) && node.moduleSpecifier !== undefined) {
    const valueNames = node.isTypeOnly ? [] : exportedValues(node.exportClause);
    return { specifier: textOf(node.moduleSpecifier), kind: valueNames.length > 0 ? "static" : "type", valueNames };
  }
  if (isImportTypeNode(node)) {
    const specifier = isLiteralTypeNode(node.argument) ? textOf(node.argument.literal) : undefined;
    return { specifier, kind: "type", valueNames: [] };
  }
  if (!isCallExpression(node)) return undefined;
  if (node.expression.kind === SyntaxKind.ImportKeyword) {
    return { specifier: textOf(node.arguments[0]), kind: "dynamic", valueNames: ["*"] };
  }
  if (isIdentifier(node.expression) && node.expression.text === "require") {
    return { specifier: textOf(node.arguments[0]), kind: "static", valueNames: ["*"] };
  }
  return undefined;
}

function importedValues(clause: ImportClause): string[] {
  if (clause.phaseModifier === SyntaxKind.TypeKeyword) return [];
  const names = clause.name === undefined ? [] : ["default"];
  const bindings = clause.namedBindings;
  if (bindings === undefined) return names;
  if (!isNamedImports(bindings)) return ["*"];
  // `import {} from` still runs the module.
  if (bindings.elements.length === 0) return ["*"];
  return [...names, ...bindings.elements.filter((one) => !one.isTypeOnly).map((one) => nameOf(one))];
}

function exportedValues(clause: Node | undefined): string[] {
  if (clause === undefined || !isNamedExports(clause)) return ["*"];
  return clause.elements.filter((one) => !one.isTypeOnly).map((one) => nameOf(one));
}

/** The name in the module it comes from, not the one it is given here. */
function nameOf(one: { readonly propertyName?: { readonly text: string }; readonly name: { readonly text: string } }) {
  return (one.propertyName ?? one.name).text;
}

function textOf(node: Node | undefined): string | undefined {
  return node !== undefined && isPlainText(node) ? node.text : undefined;
}
