import { errors } from "../../packages/server/src/errors.ts";
import { code, type GeneratedFile, markdown } from "./document.ts";

/** Every error of the APIs, by its HTTP status. */
export function errorsReference(): GeneratedFile {
  const statuses = [...new Set(Object.values(errors).map(({ status }) => status))].sort((a, b) => a - b);
  const sections = statuses.flatMap((status) => [
    `## ${status}`,
    // A heading each: `documentation` of a problem leads to it.
    ...Object.entries(errors)
      .filter(([, error]) => error.status === status)
      .flatMap(([name, { title, remedy }]) => [`### ${code(name)}`, `${title}. ${remedy}`]),
  ]);
  return {
    path: "docs/reference/errors.md",
    text: markdown(
      "Errors",
      "This page lists the errors of the partner API and the operator API, by HTTP status.",
      "Every error is `application/problem+json` (RFC 9457): `{type, title, status, code, detail, remedy, " +
        "documentation, instance, errors}`.",
      [
        "- `code` is never renamed: branch on it.",
        "- `title` is its meaning below, `detail` says what is wrong with this request, and `remedy` what to do.",
        "- `documentation` leads to the code's section of this page, relative to the service's address: " +
          "`/docs/reference/errors#<code>`. `type` is a name, not an address.",
        "- `instance` identifies the request: quote it to the operator.",
        "- `errors` lists every invalid field as `{field, code, message}`, with a path such as `card.number` or " +
          "`completions[3].amount`. If the fields have different codes, the problem's own is `invalid_request`.",
      ].join("\n"),
      ...sections,
    ),
  };
}
