import { misuses } from "../../packages/partner/src/misused.ts";
import { refusals } from "../../packages/partner/src/refused.ts";
import { errors } from "../../packages/server/src/errors.ts";
import { code, type GeneratedFile, table, withParts } from "./document.ts";

/** Every error of the APIs, by its HTTP status; every error of the partner library, from its own tables. */
export function errorsReference(): GeneratedFile[] {
  const statuses = [...new Set(Object.values(errors).map(({ status }) => status))].sort((a, b) => a - b);
  const sections = statuses.flatMap((status) => [
    `## ${status}`,
    // A heading each: `documentation` of a problem leads to it.
    ...Object.entries(errors)
      .filter(([, error]) => error.status === status)
      .flatMap(([name, { title, remedy }]) => [`### ${code(name)}`, `${title}. ${remedy}`]),
  ]);
  return [
    withParts("docs/reference/errors.md", { errors: sections.join("\n\n") }),
    withParts("docs/partner/errors.md", { refusals: reasonTable(refusals), misuses: reasonTable(misuses) }),
  ];
}

function reasonTable(reasons: Readonly<Record<string, readonly [meaning: string, remedy: string]>>): string {
  const rows = Object.entries(reasons).map(([reason, [meaning, remedy]]) => [code(reason), meaning, remedy]);
  return table(["reason", "Meaning", "Remedy"], rows);
}
