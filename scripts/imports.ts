import { checkImports } from "./imports/check.ts";
import { describe, passes } from "./sources/finding.ts";

// `node scripts/imports.ts [root]`: checks the imports against the layout.
if (import.meta.main) {
  const report = checkImports(process.argv[2] ?? process.cwd());
  process.stdout.write(describe(report));
  process.exitCode = passes(report) ? 0 : 1;
}
