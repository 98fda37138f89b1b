import { readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { analyse } from "scslre";
import { isRegularExpressionLiteral } from "typescript/unstable/ast";
import { type Block, blocksOf, generatedPart, walkthroughs } from "./sources/blocks.ts";
import { isTest, isTypeScript, listTree } from "./sources/files.ts";
import { lineOf, nodesOf, type Source, withSources } from "./sources/program.ts";

// The rules of style that neither the formatter nor the linter knows: those of code, then those of documents.

/** The project as the rules see it: paths from its root, with `/`, and what is written there. */
interface Project {
  readonly files: readonly string[];
  readonly folders: readonly string[];
  /** Every TypeScript file, parsed. */
  readonly sources: readonly Source[];
  /** Every other text: documents, settings, migrations, scripts of the shell. */
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

/** One rule of style. `check` gives every place that breaks it. */
interface StyleRule {
  readonly rule: string;
  readonly remedy: string;
  check(project: Project): Violation[];
}

const namelessFolders = new Set(["util", "utils", "common", "helper", "helpers", "lib", "libs", "misc", "shared"]);
// The third word is also ISO 4217's "no currency": it counts as a mark only in a comment.
const mark = /\b(?:TO(?:DO)|FIX(?:ME))\b|(?:\/\/|^\s*\*).*\bX{3}\b/;
const leftOut = /\b(?:test|it|describe)\b[^"'`]*\.(?:skip|skipIf|runIf|todo|fails)\b|\bskip\(\)/;
const comment = /^\s*(?:\/\/|\*\/|\/\*)/;

const codeRules: readonly StyleRule[] = [
  {
    rule: "a folder is a noun of the domain",
    remedy: "Name the folder for what it holds, or put each file where it is used",
    check: ({ folders }) =>
      folders
        .filter((folder) => namelessFolders.has(folder.split("/").at(-1) ?? ""))
        .map((folder) => ({ file: folder, line: 1, forbidden: "this folder's name says nothing" })),
  },
  {
    rule: "what is committed is finished",
    remedy: "Do it now, or say in the documents what is not there",
    check: ({ sources, texts }) =>
      [...sources, ...texts].flatMap((text) =>
        linesWhere(text, "this line puts something off", (line) => mark.test(line)),
      ),
  },
  {
    rule: "no test is left out without a reason",
    remedy: "Say why in a comment on the line or the one above it, or in skip()'s argument",
    check: ({ sources }) =>
      sources
        .filter(({ path }) => isTest(path))
        .flatMap((text) =>
          linesWhere(
            text,
            "this test is left out, and nothing says why",
            (line, above) => leftOut.test(line) && !/\/\/\s*\S/.test(line) && !comment.test(above),
          ),
        ),
  },
  {
    rule: "no regular expression takes more than linear time, whatever it is given",
    remedy: "Bound what repeats, begin where the run begins, or read the text without one",
    check: ({ sources }) => sources.filter(({ path }) => path.startsWith("packages/") && !isTest(path)).flatMap(slow),
  },
];

function linesWhere(
  { path, text }: Text,
  forbidden: string,
  breaks: (line: string, above: string) => boolean,
): Violation[] {
  const lines = text.split("\n");
  return lines.flatMap((line, at) =>
    breaks(line, lines[at - 1] ?? "") ? [{ file: path, line: at + 1, forbidden }] : [],
  );
}

function slow(source: Source): Violation[] {
  return [...nodesOf(source.tree)].filter(isRegularExpressionLiteral).flatMap((node) => {
    const end = node.text.lastIndexOf("/");
    const { reports } = analyse({ source: node.text.slice(1, end), flags: node.text.slice(end + 1) });
    const [worst] = reports.toSorted((a, b) => Number(b.exponential) - Number(a.exponential));
    if (worst === undefined) return [];
    const time = worst.exponential ? "exponential" : "polynomial";
    const forbidden = `${node.text} takes ${time} time on many of ${worst.character.literal.source}`;
    return [{ file: source.path, line: lineOf(source, node), forbidden }];
  });
}

const decision = /^docs\/decisions\/(?!README\.md$)[\w-]+\.md$/;
const beginning = /^# .+\n\nDate: \d{4}-\d{2}-\d{2}\nStatus: (?:accepted|proposed)\n\n/;

/** The documents about the code: a guide for users names files of theirs. */
const aboutCode = /^(?:CONTRIBUTING|ARCHITECTURE)\.md$|^docs\/(?:internals|decisions)\/[\w-]+\.md$/;
const namedFile = /`(?:…\/)?((?:[\w.-]+\/)*[\w.-]+\.(?:ts|sql|md|js))`/g;
/** The number that the next migration has. */
const placeholder = /NNNN/;

const documentRules: readonly StyleRule[] = [
  {
    rule: "each decision has a date and a status",
    remedy: 'After the heading, write "Date: YYYY-MM-DD" and "Status: accepted", or "proposed", on two lines',
    check: ({ texts }) =>
      texts
        .filter(({ path, text }) => decision.test(path) && !beginning.test(text))
        .map(({ path }) => ({ file: path, line: 1, forbidden: "this record does not begin with them" })),
  },
  {
    rule: "every file that a document about the code names exists",
    remedy: "Name the file as it is called now, from any of its folders on",
    check: (project) =>
      project.texts.filter(({ path }) => aboutCode.test(path)).flatMap((document) => missing(document, project)),
  },
  {
    rule: "every block of a document is run, compiled or compared, or says why it is not",
    remedy: "Mark it on the line above as docs/internals/testing.md says, with `<!-- run -->` at best",
    check: (project) =>
      project.texts.filter(({ path }) => path.endsWith(".md")).flatMap((document) => unheld(document, project)),
  },
];

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
function isNamedIn(test: string, { path }: Text, { sources }: Project): boolean {
  return sources.some((source) => source.path === test && source.text.includes(posix.basename(path, ".md")));
}

export const rules: readonly StyleRule[] = [...codeRules, ...documentRules];

const texts = /\.(?:md|sql|json|jsonc|ya?ml|sh|js|mjs|cjs|css|html)$|(?:^|\/)(?:\.npmrc|\.ci\/run)$/;

/** The number of files that were read, and the findings. A check that read nothing has failed. */
export interface TidyReport {
  readonly read: { readonly sources: number; readonly texts: number; readonly documents: number };
  readonly findings: readonly (Violation & Pick<StyleRule, "rule" | "remedy">)[];
}

/** Checks every file below `root` against the rules of style. */
export function checkTidiness(root: string): TidyReport {
  const { files, folders } = listTree(root);
  const read = files
    .filter((path) => texts.test(path))
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
  return withSources(root, files.filter(isTypeScript), (sources) => {
    const project = { files, folders, sources, texts: read };
    const findings = rules.flatMap(({ rule, remedy, check }) =>
      check(project).map((place) => ({ ...place, rule, remedy })),
    );
    const documents = read.filter(({ path }) => path.endsWith(".md")).length;
    return { read: { sources: sources.length, texts: read.length, documents }, findings };
  });
}

export function passes({ read, findings }: TidyReport): boolean {
  return findings.length === 0 && Object.values(read).every((count) => count > 0);
}

/** The report as text: a line for each finding, then one line that says how much was read. */
export function describe({ read, findings }: TidyReport): string {
  const lines = findings
    .toSorted((a, b) => a.file.localeCompare(b.file) || a.line - b.line)
    .map(({ file, line, rule, forbidden, remedy }) => `${file}:${line}: ${forbidden}. Rule: ${rule}. ${remedy}.`);
  const counts = Object.entries(read).map(([what, count]) => `${count} ${what}`);
  return [...lines, `tidy: read ${counts.join(", ")}; ${findings.length} findings`, ""].join("\n");
}

// `node scripts/tidy.ts [root]`
if (import.meta.main) {
  const report = checkTidiness(process.argv[2] ?? process.cwd());
  process.stdout.write(describe(report));
  process.exitCode = passes(report) ? 0 : 1;
}
