import { isTest, isTypeScript, listTree } from "../sources/files.ts";
import type { CheckReport, Violation } from "../sources/finding.ts";
import { withSources } from "../sources/program.ts";
import { judge, type Objection } from "./judge.ts";
import { placeOf, WITH_SQL } from "./layout.ts";
import { sqlLines } from "./sql.ts";
import { readImports } from "./statements.ts";

/** Checks the sources below `root`/packages against the layout. Tests may import anything. */
export function checkImports(root: string): CheckReport {
  const paths = listTree(root).files.filter(
    (path) => isTypeScript(path) && !isTest(path) && placeOf(path) !== undefined,
  );
  return withSources(root, paths, (sources) => {
    const byPath = new Map(sources.map((source) => [source.path, source]));
    const findings: Violation[] = [];
    let imports = 0;
    for (const source of sources) {
      const place = placeOf(source.path);
      if (place === undefined) continue;
      for (const statement of readImports(source)) {
        imports += 1;
        const objection = judge(source.path, place, statement, byPath);
        if (objection !== undefined) findings.push({ file: source.path, line: statement.line, ...objection });
      }
      if (WITH_SQL.has(place)) continue;
      for (const line of sqlLines(source)) findings.push({ file: source.path, line, ...SQL_OUTSIDE });
    }
    return { name: "imports", read: { files: sources.length, imports }, findings };
  });
}

const SQL_OUTSIDE: Objection = {
  rule: "SQL stands in packages/server/src/store (and postgres/) alone",
  forbidden: "this text is SQL",
  remedy: "Move the statement into the file of its aggregate in store/ and call it through an interface",
};
