import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { type Block, blocksOf, walkthroughs } from "../../scripts/sources/blocks.ts";

/**
 * One example of a document, by the mark above it. `place` is the line of its fence, as README.md:48.
 *
 * - `run`: runs to its end, and its output is compared with the block that follows;
 * - `start`: runs until the document ends;
 * - `show`: the output of the running one, or of the sandbox;
 * - `write`: a file that later examples use;
 * - `quote`: part of that file of the repository, word by word.
 */
export type Example = { readonly place: string; readonly text: string } & (
  | { readonly does: "run"; readonly language: "sh" | "js"; readonly answer: ExampleAnswer | undefined }
  | { readonly does: "start" }
  | { readonly does: "show"; readonly by: "it" | "the sandbox" }
  | { readonly does: "write"; readonly file: string }
  | { readonly does: "quote"; readonly from: string }
);

export interface ExampleAnswer {
  readonly language: "json" | "text";
  readonly text: string;
}

interface Document {
  readonly path: string;
  readonly text: string;
}

/** README.md, and every document below docs but the walkthroughs, with their paths from the root. */
export async function readDocuments(root: string): Promise<readonly Document[]> {
  const below = await readdir(join(root, "docs"), { recursive: true, withFileTypes: true });
  const names = below
    .filter((entry) => entry.isFile() && entry.name.endsWith(".md"))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
  const paths = ["README.md", ...names.sort()].filter((path) => !walkthroughs.includes(path));
  return Promise.all(paths.map(async (path) => ({ path, text: await readFile(join(root, path), "utf8") })));
}

/**
 * The examples of a document that test/examples.test.ts runs or compares, in their order.
 *
 * @throws for a mark of this kind before a block that cannot be run so, or before none: nobody would know
 */
export function examplesOf({ path, text }: Document): readonly Example[] {
  const blocks = blocksOf(text);
  const marks = text.split("\n").filter((line) => /^<!-- run/.test(line)).length;
  if (marks > blocks.filter(({ mark }) => mark?.startsWith("run")).length) {
    throw new Error(`${path}: a mark stands before no block`);
  }
  return blocks.flatMap((block, index) => {
    const example = exampleOf(block, blocks[index + 1], path);
    return example === undefined ? [] : [example];
  });
}

function exampleOf(block: Block, next: Block | undefined, path: string): Example | undefined {
  const { mark = "", language, text } = block;
  const at = { place: `${path}:${block.line}`, text };
  const [, file] = /^file (\S+)$/.exec(mark) ?? [];
  if (file !== undefined) return { ...at, does: "write", file };
  const [, from] = /^from (\S+)$/.exec(mark) ?? [];
  if (from !== undefined) return { ...at, does: "quote", from };
  const [, by] = /^(it|the sandbox) shows$/.exec(mark) ?? [];
  if (by === "it" || by === "the sandbox") return { ...at, does: "show", by };
  if (mark === "run, goes on" && language === "sh") return { ...at, does: "start" };
  if (mark === "run" && (language === "sh" || language === "js")) {
    return { ...at, does: "run", language, answer: answerOf(next) };
  }
  if (mark.startsWith("run")) throw new Error(`${at.place}: a block of ${language} is not run as "${mark}" says`);
  return undefined;
}

function answerOf(next: Block | undefined): ExampleAnswer | undefined {
  if (next === undefined || !next.follows || next.mark !== undefined) return undefined;
  const { language, text } = next;
  return language === "json" || language === "text" ? { language, text } : undefined;
}

/**
 * Replaces values that differ from run to run: ids, times, ports, and the bank's numbers. A reqId is unchanged: the
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
    .replaceAll(/("(?:failures|probes)": )\d+/g, "$1<number>")
    .replaceAll(/("durationMs": )[\d.]+/g, "$1<duration>")
    .replaceAll(/("state": ")(?:pending|accepted)"/g, '$1<state>"')
    .replaceAll(/(127\.0\.0\.1|localhost):\d+/g, "$1:<port>")
    .trim();
}

/** An answer as it is compared: JSON by its values, whatever its spaces. */
export function comparable(language: "json" | "text", answer: string): string {
  return normalised(language === "json" ? JSON.stringify(JSON.parse(answer), null, 2) : answer);
}
