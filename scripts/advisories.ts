import { spawnSync } from "node:child_process";

interface Audit {
  readonly metadata?: { readonly vulnerabilities?: Readonly<Record<string, number>> };
}

/** The meaning of `npm audit --json`. Without an answer nothing is known, which must not pass for nothing found. */
export function verdictOf(output: string): { readonly exitCode: number; readonly text: string } {
  const counts = countsOf(output);
  if (counts === undefined)
    return { exitCode: 2, text: "advisories: not known, the registry does not answer that question" };
  const { high = 0, critical = 0, total = 0 } = counts;
  const severe = high + critical;
  return { exitCode: severe === 0 ? 0 : 1, text: `advisories: ${total} known, ${severe} of them high or critical` };
}

function countsOf(output: string): Readonly<Record<string, number>> | undefined {
  try {
    return (JSON.parse(output) as Audit).metadata?.vulnerabilities;
  } catch {
    return undefined;
  }
}

// `npm run advisories`: of what is installed to run the service.
if (import.meta.main) {
  const { stdout } = spawnSync("npm", ["audit", "--json", "--omit", "dev"], { encoding: "utf8", timeout: 60_000 });
  const { exitCode, text } = verdictOf(stdout ?? "");
  process.stdout.write(`${text}\n`);
  process.exitCode = exitCode;
}
