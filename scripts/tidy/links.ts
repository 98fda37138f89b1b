import { posix } from "node:path";
import type { Project, RuleViolation, StyleRule, Text } from "./rule.ts";

export const LINK_RULES: readonly StyleRule[] = [
  {
    rule: "every relative link in a document leads somewhere",
    remedy: "Correct the path or the heading's anchor",
    check: (project) =>
      project.texts.filter(({ path }) => path.endsWith(".md")).flatMap((text) => broken(text, project)),
  },
];

function broken(document: Text, { files, folders, texts }: Project): RuleViolation[] {
  const existing = new Set([...files, ...folders]);
  return withoutCode(document.text).flatMap((line, index) =>
    [...line.matchAll(/\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\s*\[[^\]]+\]:\s*(\S+)/g)].flatMap((match) => {
      const link = match[1] ?? match[2] ?? "";
      if (/^[a-z][a-z0-9+.-]*:|^\/\//i.test(link) || leadsSomewhere(link)) return [];
      return [{ file: document.path, line: index + 1, forbidden: `the link "${link}" leads nowhere` }];
    }),
  );

  function leadsSomewhere(link: string): boolean {
    const [path = "", anchor] = link.split("#");
    const target = path === "" ? document.path : posix.join(posix.dirname(document.path), decodeURIComponent(path));
    const file = target.replace(/\/$/, "");
    if (file !== "." && !existing.has(file)) return false;
    if (anchor === undefined || !file.endsWith(".md")) return true;
    const text = texts.find((one) => one.path === file);
    return text !== undefined && anchorsOf(text.text).has(decodeURIComponent(anchor));
  }
}

/** The lines of a document, with code blanked out: an example is neither a link nor a sentence. */
export function withoutCode(text: string): string[] {
  let inCode = false;
  return text.split("\n").map((line) => {
    const isFence = /^\s*(?:```|~~~)/.test(line);
    if (isFence) inCode = !inCode;
    return isFence || inCode ? "" : line.replaceAll(/`[^`]*`/g, "");
  });
}

/** The anchors that a forge gives to a document's headings. */
function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const heading of headingsOf(text)) {
    const words = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const anchor = words
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replaceAll(/\s/g, "-");
    let name = anchor;
    for (let twin = 1; anchors.has(name); twin += 1) name = `${anchor}-${twin}`;
    anchors.add(name);
  }
  for (const [, id] of text.matchAll(/\b(?:id|name)="([^"]+)"/g)) if (id !== undefined) anchors.add(id);
  return anchors;
}

function headingsOf(text: string): string[] {
  const headings = text.replaceAll(/^\s*(```|~~~)[\s\S]*?^\s*\1/gm, "").matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm);
  return [...headings].map(([, heading = ""]) => heading);
}
