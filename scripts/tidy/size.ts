import {
  isExportAssignment,
  isExportDeclaration,
  isInterfaceDeclaration,
  isNamedExports,
  isTypeAliasDeclaration,
  isVariableStatement,
  type Node,
  type Statement,
  SyntaxKind,
} from "typescript/unstable/ast";
import { isTest } from "../sources/files.ts";
import { isGenerated, type Source } from "../sources/program.ts";
import type { StyleRule } from "./rule.ts";

const COLUMNS_MAX = 120;
/** A file is one concept. Types are not counted: a table and the type derived from it are one name to its reader. */
const EXPORTS_MAX = 10;

export const SIZE_RULES: readonly StyleRule[] = [
  {
    rule: `a line has at most ${COLUMNS_MAX} columns`,
    remedy: "Break the line",
    // A generated line is as long as its source makes it.
    check: ({ sources }) =>
      sources
        .filter((source) => !isGenerated(source))
        .flatMap(({ path, text }) =>
          text.split("\n").flatMap((line, index) => {
            const columns = [...line].length;
            return columns <= COLUMNS_MAX ? [] : [{ file: path, line: index + 1, forbidden: `${columns} columns` }];
          }),
        ),
  },
  {
    rule: `a source file of a package exports at most ${EXPORTS_MAX} values, index.ts excepted`,
    remedy: "Make two files of it, or keep to itself what nobody else needs",
    check: ({ sources }) =>
      sources.filter(isBoundedInExports).flatMap((source) => {
        const values = countExportedValues(source);
        return values <= EXPORTS_MAX ? [] : [{ file: source.path, line: 1, forbidden: `${values} exported values` }];
      }),
  },
];

function isBoundedInExports({ path }: Source): boolean {
  return /^packages\/[^/]+\/src\//.test(path) && !isTest(path) && !path.endsWith("/index.ts");
}

function countExportedValues(source: Source): number {
  return source.tree.statements.reduce((count, statement) => count + exportedValues(statement), 0);
}

function exportedValues(statement: Statement): number {
  if (isExportAssignment(statement)) return 1;
  if (isExportDeclaration(statement)) return statement.isTypeOnly ? 0 : namedValues(statement.exportClause);
  if (isInterfaceDeclaration(statement) || isTypeAliasDeclaration(statement)) return 0;
  const modifiers = "modifiers" in statement ? (statement.modifiers as { kind: SyntaxKind }[] | undefined) : undefined;
  if (!modifiers?.some(({ kind }) => kind === SyntaxKind.ExportKeyword)) return 0;
  return isVariableStatement(statement) ? statement.declarationList.declarations.length : 1;
}

function namedValues(clause: Node | undefined): number {
  if (clause === undefined || !isNamedExports(clause)) return 1;
  return clause.elements.filter(({ isTypeOnly }) => !isTypeOnly).length;
}
