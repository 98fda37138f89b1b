import { describe, passes } from "./sources/finding.ts";
import { checkTidiness } from "./tidy/check.ts";

// `node scripts/tidy.ts [root]`: the rules of style that neither the formatter nor the linter knows.
if (import.meta.main) {
  const report = checkTidiness(process.argv[2] ?? process.cwd());
  process.stdout.write(describe(report));
  process.exitCode = passes(report) ? 0 : 1;
}
