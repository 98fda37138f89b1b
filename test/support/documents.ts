import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";

/** One example of a document that is run: `<!-- run -->`, then a fence, then perhaps what it answers. */
export interface Example {
  /** Where its fence begins, as README.md:48. */
  readonly place: string;
  readonly language: "sh" | "js";
  readonly code: string;
  /** The block of the answer that follows directly, with nothing but empty lines between. */
  readonly answer: { readonly language: "json" | "text"; readonly text: string } | undefined;
}

const mark = "<!-- run -->";

/** README.md, and every document below docs, with their paths from the root. */
export async function readDocuments(root: string): Promise<readonly { path: string; text: string }[]> {
  const below = await readdir(join(root, "docs"), { recursive: true, withFileTypes: true }).catch(() => []);
  const names = below
    .filter((entry) => entry.isFile() && entry.name.endsWith(".md"))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
  const paths = ["README.md", ...names.sort()];
  const texts = await Promise.all(paths.map((path) => readFile(join(root, path), "utf8").catch(() => "")));
  return paths.map((path, index) => ({ path, text: texts[index] ?? "" }));
}

/**
 * The examples of a document that are marked to be run, in their order.
 *
 * @throws when a mark stands before anything else than a fence of sh or js: it would run nothing, and nobody would know
 */
export function examplesOf({ path, text }: { readonly path: string; readonly text: string }): readonly Example[] {
  const lines = text.split("\n");
  const examples: Example[] = [];
  for (const [index, line] of lines.entries()) {
    if (line.trim() !== mark) continue;
    const fence = fenceAfter(lines, index + 1);
    const place = `${path}:${index + 1}`;
    if (fence === undefined || (fence.language !== "sh" && fence.language !== "js")) {
      throw new Error(`${place}: after ${mark} there must be a fence of sh or js`);
    }
    const { language, text: code, end } = fence;
    const answer = fenceAfter(lines, end + 1);
    const answers = answer?.language === "json" || answer?.language === "text";
    examples.push({
      place,
      language,
      code,
      answer: answers ? { language: answer.language as "json" | "text", text: answer.text } : undefined,
    });
  }
  return examples;
}

interface Fence {
  readonly language: string;
  readonly text: string;
  /** The index of its last line. */
  readonly end: number;
}

function fenceAfter(lines: readonly string[], from: number): Fence | undefined {
  let start = from;
  while (lines[start]?.trim() === "") start += 1;
  const language = /^```(\w+)$/.exec(lines[start] ?? "")?.[1];
  const end = lines.indexOf("```", start + 1);
  if (language === undefined || end === -1) return undefined;
  return { language, text: lines.slice(start + 1, end).join("\n"), end };
}

/**
 * What differs from run to run is alike afterwards: ids, times, ports, and what a bank makes up. A reqId stays: the
 * example itself chose it.
 */
function normalised(answer: string): string {
  return answer
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g, "<id>")
    .replaceAll(/\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z/g, "<time>")
    .replaceAll(/("(?:transDateTime|transaction_time)": ")\d{14}"/g, '$1<time>"')
    .replaceAll(/("approveCode": ")[0-9A-Z]{6}"/g, '$1<code>"')
    .replaceAll(/("refId": ")\d{12}"/g, '$1<reference>"')
    .replaceAll(/("(?:traceNo|invoiceNo|batchNo)": ")\d{6}"/g, '$1<number>"')
    .replaceAll(/("durationMs": )[\d.]+/g, "$1<duration>")
    .replaceAll(/("state": ")(?:pending|accepted)"/g, '$1<state>"')
    .replaceAll(/(127\.0\.0\.1|localhost):\d+/g, "$1:<port>")
    .trim();
}

/** An answer as it is compared: JSON by its values, whatever its spaces. */
export function comparable(language: "json" | "text", answer: string): string {
  return normalised(language === "json" ? JSON.stringify(JSON.parse(answer), null, 2) : answer);
}
