import {
  isClassDeclaration,
  isInterfaceDeclaration,
  isTypeAliasDeclaration,
  SyntaxKind,
} from "typescript/unstable/ast";
import { isTest } from "../sources/files.ts";
import { isGenerated, lineOf, type Source } from "../sources/program.ts";
import type { StyleRule } from "./rule.ts";

export const TYPE_NAME_RULES: readonly StyleRule[] = [
  {
    rule: "the name of an exported type is declared in one file of the packages",
    remedy: "Import the type if it is the same one; otherwise name each by what it is",
    check({ sources }) {
      const declared = Map.groupBy(sources.filter(isProduct).flatMap(exportedTypes), ({ name }) => name);
      return [...declared.values()].flatMap((places) => {
        const files = new Set(places.map(({ file }) => file));
        return places.flatMap(({ name, file, line }) => {
          const others = [...files].filter((other) => other !== file);
          return others.length === 0 ? [] : [{ file, line, forbidden: `${name} is in ${others.join(", ")} too` }];
        });
      });
    },
  },
];

/** Generated types are the API document's, in which the same names stand for what the service answers. */
function isProduct(source: Source): boolean {
  return /^packages\/[^/]+\/src\//.test(source.path) && !isTest(source.path) && !isGenerated(source);
}

function exportedTypes(source: Source) {
  return source.tree.statements.flatMap((statement) => {
    if (!isClassDeclaration(statement) && !isInterfaceDeclaration(statement) && !isTypeAliasDeclaration(statement))
      return [];
    const isExported = statement.modifiers?.some(({ kind }) => kind === SyntaxKind.ExportKeyword) === true;
    const name = statement.name?.text;
    return isExported && name !== undefined ? [{ name, file: source.path, line: lineOf(source, statement) }] : [];
  });
}
