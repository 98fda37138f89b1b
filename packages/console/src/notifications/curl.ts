import type { ExplainedNotification } from "../api/operations.ts";

/** The POST as a command for a shell, every value quoted. */
export function curlOf({ url, headers, body }: Pick<ExplainedNotification, "url" | "headers" | "body">): string {
  const given = Object.entries(headers).map(([name, value]) => `  -H ${quoted(`${name}: ${value}`)}`);
  return [
    `curl -X POST ${quoted(url ?? "https://partner.example/ipn")}`,
    ...given,
    `  --data-binary ${quoted(body)}`,
  ].join(" \\\n");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
