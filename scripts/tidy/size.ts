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
import type { Source } from "../sources/program.ts";
import type { Rule } from "./rule.ts";

const CODE_LINES_MAX = 400;
const TEST_CODE_LINES_MAX = 600;
const COLUMNS_MAX = 120;
/** A file is one concept. Types are not counted: a table and the type derived from it are one name to its reader. */
const EXPORTS_MAX = 10;

export const SIZE_RULES: readonly Rule[] = [
  {
    rule: `a file has at most ${CODE_LINES_MAX} lines of code, a test ${TEST_CODE_LINES_MAX}`,
    remedy: "Make two files of it, each with one concept",
    check: ({ sources }) =>
      sources.flatMap((source) => {
        const lines = countCodeLines(source.text);
        const bound = isTest(source.path) ? TEST_CODE_LINES_MAX : CODE_LINES_MAX;
        return lines <= bound ? [] : [{ file: source.path, line: 1, forbidden: `${lines} lines of code` }];
      }),
  },
  {
    rule: `a line has at most ${COLUMNS_MAX} columns`,
    remedy: "Break the line",
    check: ({ sources }) =>
      sources.flatMap(({ path, text }) =>
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

/** Lines that are neither empty nor comment alone: explaining more must not make a file too long. */
function countCodeLines(text: string): number {
  let count = 0;
  let inComment = false;
  for (const line of text.split("\n").map((one) => one.trim())) {
    if (line.startsWith("/*")) inComment = true;
    if (!inComment && line !== "" && !line.startsWith("//")) count += 1;
    if (line.endsWith("*/")) inComment = false;
  }
  return count;
}

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
