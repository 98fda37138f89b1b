import { posix } from "node:path";
import { type Block, blocksOf, generatedPart, walkthroughs } from "../sources/blocks.ts";
import type { Project, StyleRule, Text, Violation } from "./rule.ts";

const decision = /^docs\/decisions\/(?!README\.md$)[\w-]+\.md$/;
const beginning = /^# .+\n\nDate: \d{4}-\d{2}-\d{2}\nStatus: (?:accepted|proposed)\n\n/;

/** The documents about the code: a guide for users names files of theirs. */
const aboutCode = /^(?:CONTRIBUTING|ARCHITECTURE)\.md$|^docs\/(?:internals|decisions)\/[\w-]+\.md$/;
const namedFile = /`(?:…\/)?((?:[\w.-]+\/)*[\w.-]+\.(?:ts|sql|md|js))`/g;
/** The number that the next migration has. */
const placeholder = /NNNN/;

export const documentRules: readonly StyleRule[] = [
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
