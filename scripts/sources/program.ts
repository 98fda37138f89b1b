import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  isNoSubstitutionTemplateLiteral,
  isStringLiteral,
  type Node,
  type NoSubstitutionTemplateLiteral,
  type SourceFile,
  type StringLiteral,
} from "typescript/unstable/ast";
import { API } from "typescript/unstable/sync";

/** A source file as TypeScript itself parsed it. */
export interface Source {
  /** Path from the root, with `/`. */
  readonly path: string;
  readonly text: string;
  readonly tree: SourceFile;
}

/**
 * Parses `paths` with TypeScript's own parser and hands them to `use`; the parser's process ends when `use` returns.
 *
 * Throws when TypeScript does not see one of the files: a check over sources nobody saw would pass by checking nothing.
 */
export function withSources<Result>(
  root: string,
  paths: readonly string[],
  use: (sources: readonly Source[]) => Result,
): Result {
  const config = join(root, "tsconfig.checks.json");
  const settings = {
    compilerOptions: { noLib: true, noResolve: true, types: [], jsx: "preserve", allowJs: true },
    files: paths,
  };
  const api = new API({
    cwd: root,
    fs: {
      fileExists: (path) => (path === config ? true : undefined),
      readFile: (path) => (path === config ? JSON.stringify(settings) : undefined),
    },
  });
  try {
    const project = api.updateSnapshot({ openProjects: [config] }).getProject(config);
    return use(paths.map((path) => ({ path, text: readFileSync(join(root, path), "utf8"), tree: parsed(path) })));

    function parsed(path: string): SourceFile {
      const tree = project?.program.getSourceFile(join(root, path));
      if (tree === undefined) throw new Error(`TypeScript did not see ${path}: the check cannot be trusted`);
      return tree;
    }
  } finally {
    api.close();
  }
}

/** Every node below `node`, the outer ones first. */
export function* nodesOf(node: Node): Generator<Node> {
  const children: Node[] = [];
  node.forEachChild((child) => {
    children.push(child);
  });
  for (const child of children) {
    yield child;
    yield* nodesOf(child);
  }
}

/** The line, counted from 1, on which `node` begins. */
export function lineOf(source: Source, node: Node): number {
  return source.tree.getLineAndCharacterOfPosition(node.getStart(source.tree)).line + 1;
}

/** A text that is written out whole, in whichever quotes. */
export function isPlainText(node: Node): node is StringLiteral | NoSubstitutionTemplateLiteral {
  return isStringLiteral(node) || isNoSubstitutionTemplateLiteral(node);
}
