import type { Project, RuleViolation, StyleRule, Text } from "./rule.ts";

/** The documents about the code: a guide for users names files of theirs. */
const ABOUT_CODE = /^(?:CONTRIBUTING|ARCHITECTURE)\.md$|^docs\/(?:internals|decisions)\/[\w-]+\.md$/;
const NAMED = /`(?:…\/)?((?:[\w.-]+\/)*[\w.-]+\.(?:ts|sql|md|js))`/g;
/** The number that the next migration has. */
const PLACEHOLDER = /NNNN/;

export const NAMED_FILE_RULES: readonly StyleRule[] = [
  {
    rule: "every file that a document about the code names exists",
    remedy: "Name the file as it is called now, from any of its folders on",
    check: (project) =>
      project.texts.filter(({ path }) => ABOUT_CODE.test(path)).flatMap((document) => missing(document, project)),
  },
];

function missing(document: Text, { files }: Project): RuleViolation[] {
  return document.text.split("\n").flatMap((line, index) =>
    [...line.matchAll(NAMED)].flatMap(([, name = ""]) => {
      if (PLACEHOLDER.test(name) || files.some((file) => `/${file}`.endsWith(`/${name}`))) return [];
      return [{ file: document.path, line: index + 1, forbidden: `there is no file ${name}` }];
    }),
  );
}
