import { readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { parseSync, Visitor } from "rolldown/utils";
import { analyse } from "scslre";
import { type Block, blocksOf, generatedPart, walkthroughs } from "./sources/blocks.ts";
import { isTest, isTypeScript, listTree } from "./sources/files.ts";

// The rules of style that neither the formatter nor the linter knows: those of code, then those of documents.

/** The project as the rules see it: paths from its root, with `/`, and the texts of sources, documents and settings. */
interface Project {
  readonly files: readonly string[];
  readonly folders: readonly string[];
  readonly texts: readonly Text[];
}

interface Text {
  readonly path: string;
  readonly text: string;
}

/** A place that breaks a rule. */
interface Violation {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  readonly forbidden: string;
}

const namelessFolders = new Set(["util", "utils", "common", "helper", "helpers", "lib", "libs", "misc", "shared"]);
// The third word is also ISO 4217's "no currency": it counts as a mark only in a comment.
const mark = /\b(?:TO(?:DO)|FIX(?:ME))\b|(?:\/\/|^\s*\*).*\bX{3}\b/;
const leftOut = /\b(?:test|it|describe)\b[^"'`]*\.(?:skip|skipIf|runIf|todo|fails)\b|\bskip\(\)/;
const comment = /^\s*(?:\/\/|\*\/|\/\*)/;

/** @param breaks is given a line and the one above it */
function linesWhere(texts: readonly Text[], forbidden: string, breaks: (line: string, above: string) => boolean) {
  return texts.flatMap(({ path, text }) => {
    const lines = text.split("\n");
    return lines.flatMap((line, at) =>
      breaks(line, lines[at - 1] ?? "") ? [{ file: path, line: at + 1, forbidden }] : [],
    );
  });
}

function slow({ path, text }: Text): Violation[] {
  const found: Violation[] = [];
  const { program, errors } = parseSync(path, text);
  if (errors[0] !== undefined) throw new Error(`${path}: ${errors[0].message}`);
  const visitor = new Visitor({
    Literal(node) {
      if (!("regex" in node)) return;
      const { pattern, flags } = node.regex;
      const { reports } = analyse({ source: pattern, flags });
      const [worst] = reports.toSorted((a, b) => Number(b.exponential) - Number(a.exponential));
      if (worst === undefined) return;
      const time = worst.exponential ? "exponential" : "polynomial";
      const forbidden = `/${pattern}/${flags} takes ${time} time on many of ${worst.character.literal.source}`;
      found.push({ file: path, line: text.slice(0, node.start).split("\n").length, forbidden });
    },
  });
  visitor.visit(program);
  return found;
}

const decision = /^docs\/decisions\/(?!README\.md$)[\w-]+\.md$/;
const beginning = /^# .+\n\nDate: \d{4}-\d{2}-\d{2}\nStatus: (?:accepted|proposed)\n\n/;

/** The documents about the code: a guide for users names files of theirs. */
const aboutCode = /^(?:CONTRIBUTING|ARCHITECTURE)\.md$|^docs\/(?:internals|decisions)\/[\w-]+\.md$/;
const namedFile = /`(?:…\/)?((?:[\w.-]+\/)*[\w.-]+\.(?:ts|sql|md|js))`/g;
/** The number that the next migration has. */
const placeholder = /NNNN/;

function missing(document: Text, { files }: Project): Violation[] {
  return document.text.split("\n").flatMap((line, index) =>
    [...line.matchAll(namedFile)].flatMap(([, name = ""]) => {
      if (placeholder.test(name) || files.some((file) => `/${file}`.endsWith(`/${name}`))) return [];
      return [{ file: document.path, line: index + 1, forbidden: `there is no file ${name}` }];
    }),
  );
}

function unheld(document: Text, project: Project): Violation[] {
  const written = document.text.replace(generatedPart, (part) => part.replace(/.*/g, ""));
  const blocks = blocksOf(written);
  return blocks.flatMap((block, index) => {
    // Diagrams of mermaid are not examples.
    if (block.language === "mermaid") return [];
    const forbidden = isAnswer(block, blocks[index - 1]) ? undefined : objection(block, document, project);
    return forbidden === undefined ? [] : [{ file: document.path, line: block.line, forbidden }];
  });
}

/** The answer of an example that is run is compared by test/examples.test.ts. */
function isAnswer({ mark, language, follows }: Block, before: Block | undefined): boolean {
  return mark === undefined && follows && before?.mark === "run" && (language === "json" || language === "text");
}

const ways: readonly {
  mark: RegExp;
  languages?: RegExp;
  fits?: (name: string, at: Text, project: Project) => boolean;
}[] = [
  { mark: /^run$/, languages: /^(?:sh|js)$/, fits: isExampleDocument },
  { mark: /^run, goes on$/, languages: /^sh$/, fits: isExampleDocument },
  { mark: /^(?:it|the sandbox) shows$/, languages: /^text$/, fits: isExampleDocument },
  { mark: /^file [\w.-]+$/, fits: (_, at) => isExampleDocument("", at) || isWalkthrough("", at) },
  { mark: /^terminal \d.*$/, fits: isWalkthrough },
  { mark: /^compiled$/, languages: /^js$/, fits: isExampleDocument },
  { mark: /^from (\S+)$/, fits: (name, at, { files }) => isExampleDocument("", at) && files.includes(name) },
  { mark: /^held by (\S+\.test\.ts)$/, fits: isNamedIn },
  { mark: /^not run: \S.{8,}$/ },
];

function objection({ mark, language }: Block, document: Text, project: Project): string | undefined {
  if (mark === undefined) return "nothing runs this block";
  for (const way of ways) {
    const [found, name = ""] = way.mark.exec(mark) ?? [];
    if (found === undefined) continue;
    if (way.languages?.test(language) === false) return `"${mark}" is no mark for ${language || "no language"}`;
    if (way.fits?.(name, document, project) === false) return `what "${mark}" says is not so here`;
    return undefined;
  }
  return `"${mark}" is no mark`;
}

/** test/examples.test.ts reads these: the last is its own fixture. */
function isExampleDocument(_: string, { path }: Text): boolean {
  if (walkthroughs.includes(path)) return false;
  return path === "README.md" || path.startsWith("docs/") || path === "test/support/document-fixtures/guide.md";
}

function isWalkthrough(_: string, { path }: Text): boolean {
  return walkthroughs.includes(path);
}

/** The test reads the document by its name. */
function isNamedIn(test: string, { path }: Text, { texts }: Project): boolean {
  return texts.some((one) => one.path === test && one.text.includes(posix.basename(path, ".md")));
}

/** By rule, and what to do: every place that breaks it. */
export const rules: Readonly<Record<string, (project: Project) => Violation[]>> = {
  "A folder is a noun of the domain: name it for what it holds, or put each file where it is used": ({ folders }) =>
    folders
      .filter((folder) => namelessFolders.has(posix.basename(folder)))
      .map((folder) => ({ file: folder, line: 1, forbidden: "this folder's name says nothing" })),
  "What is committed is finished: do it now, or say in the documents what is not there": ({ texts }) =>
    linesWhere(texts, "this line puts something off", (line) => mark.test(line)),
  "No test is left out without a reason: say why on the line or the one above it, or in skip()'s argument": (project) =>
    linesWhere(
      project.texts.filter(({ path }) => isTypeScript(path) && isTest(path)),
      "this test is left out, and nothing says why",
      (line, above) => leftOut.test(line) && !/\/\/\s*\S/.test(line) && !comment.test(above),
    ),
  "A regular expression takes linear time, whatever it is given: bound what repeats, or do without it": ({ texts }) =>
    texts.filter(({ path }) => path.startsWith("packages/") && isTypeScript(path) && !isTest(path)).flatMap(slow),
  'A decision begins with "Date: YYYY-MM-DD" and "Status: accepted", or "proposed", on two lines': ({ texts }) =>
    texts
      .filter(({ path, text }) => decision.test(path) && !beginning.test(text))
      .map(({ path }) => ({ file: path, line: 1, forbidden: "this record does not begin with them" })),
  "Every file that a document about the code names exists: name it as it is called now, from any folder on": (
    project,
  ) => project.texts.filter(({ path }) => aboutCode.test(path)).flatMap((document) => missing(document, project)),
  "Every block is run, compiled or compared, or says why not: mark it as docs/internals/testing.md says": (project) =>
    project.texts.filter(({ path }) => path.endsWith(".md")).flatMap((document) => unheld(document, project)),
};

const read = /\.(?:md|sql|json|jsonc|ya?ml|sh|js|mjs|cjs|css|html|tsx?)$|(?:^|\/)(?:\.npmrc|\.ci\/run)$/;

/** The number of files that were read, and a line for each finding. A check that read nothing has failed. */
export function checkTidiness(root: string): {
  readonly read: readonly number[];
  readonly findings: readonly string[];
} {
  const { files, folders } = listTree(root);
  const texts = files
    .filter((path) => read.test(path))
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
  const findings = Object.entries(rules).flatMap(([rule, check]) =>
    check({ files, folders, texts }).map(({ file, line, forbidden }) => `${file}:${line}: ${forbidden}. ${rule}.`),
  );
  const count = (kind: RegExp) => texts.filter(({ path }) => kind.test(path)).length;
  return { read: [count(/\.tsx?$/), count(/\.md$/), count(/\.ya?ml$/)], findings: findings.sort() };
}

// `node scripts/tidy.ts [root]`
if (import.meta.main) {
  const { read, findings } = checkTidiness(process.argv[2] ?? process.cwd());
  const [sources, documents] = read;
  const summary = `tidy: read ${sources} sources, ${documents} documents; ${findings.length} findings`;
  process.stdout.write(`${[...findings, summary].join("\n")}\n`);
  process.exitCode = findings.length === 0 && !read.includes(0) ? 0 : 1;
}
