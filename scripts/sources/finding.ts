/** One violation that a check found, with everything needed to fix it. */
export interface Violation {
  /** Path from the root of the repository, with `/`. */
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  readonly rule: string;
  readonly forbidden: string;
  readonly remedy: string;
}

/** The files that a check read, and its findings. A check that read nothing has failed. */
export interface CheckReport {
  readonly name: string;
  readonly read: Readonly<Record<string, number>>;
  readonly findings: readonly Violation[];
}

export function passes(report: CheckReport): boolean {
  return report.findings.length === 0 && Object.values(report.read).every((count) => count > 0);
}

/** The report as text: a line for each finding, then one line that says how much was read. */
export function describe(report: CheckReport): string {
  const lines = report.findings
    .toSorted((a, b) => a.file.localeCompare(b.file) || a.line - b.line)
    .map(({ file, line, rule, forbidden, remedy }) => `${file}:${line}: ${forbidden}. Rule: ${rule}. ${remedy}.`);
  const counts = Object.entries(report.read);
  const read = counts.map(([what, count]) => `${count} ${what}`).join(", ");
  lines.push(`${report.name}: read ${read}; ${report.findings.length} findings`);
  const nothing = counts.filter(([, count]) => count === 0).map(([what]) => what);
  if (nothing.length > 0) lines.push(`${report.name}: failed, because it read no ${nothing.join(" and no ")}`);
  return `${lines.join("\n")}\n`;
}
