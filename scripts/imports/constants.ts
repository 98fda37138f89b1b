import {
  isArrowFunction,
  isAwaitExpression,
  isCallExpression,
  isClassExpression,
  isFunctionExpression,
  isIdentifier,
  isNewExpression,
  isTaggedTemplateExpression,
  isVariableStatement,
  type Node,
  SyntaxKind,
} from "typescript/unstable/ast";
import { nodesOf, type Source } from "../sources/program.ts";

const RUNS = [
  isCallExpression,
  isNewExpression,
  isAwaitExpression,
  isTaggedTemplateExpression,
  isArrowFunction,
  isFunctionExpression,
  isClassExpression,
];

/** The names a file exports whose value is written out, so that importing one takes over no behaviour. */
export function writtenConstants(source: Source): Set<string> {
  const names = new Set<string>();
  for (const statement of source.tree.statements) {
    if (!isVariableStatement(statement)) continue;
    if (!statement.modifiers?.some((modifier) => modifier.kind === SyntaxKind.ExportKeyword)) continue;
    for (const { name, initializer } of statement.declarationList.declarations) {
      if (isIdentifier(name) && initializer !== undefined && isWritten(initializer)) names.add(name.text);
    }
  }
  return names;
}

function isWritten(value: Node): boolean {
  return [value, ...nodesOf(value)].every((node) => RUNS.every((runs) => !runs(node)));
}
