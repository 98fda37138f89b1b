/** One fenced block of a document, and the comment that says how it is tested. */
export interface Block {
  /** The line of its fence, counted from 1. */
  readonly line: number;
  /** The text after the fence; empty without. */
  readonly language: string;
  readonly text: string;
  /** `run`, for `<!-- run -->` above it with nothing but empty lines between. */
  readonly mark: string | undefined;
  /** Whether only empty lines separate the previous block from this one. */
  readonly follows: boolean;
}

/** The documents that tell of several terminals, step by step. Every block of them is a step, marked as one. */
export const walkthroughs: readonly string[] = ["docs/partner/tutorial.md"];

/** Stands at the top of what scripts/generate.ts writes. Its blocks are held by that which they are made from. */
export const generatedNotice = "<!-- Generated from the code by scripts/generate.ts";

/** The fenced blocks of a document, in their order. A fence that does not end goes on to the end of the document. */
export function blocksOf(document: string): readonly Block[] {
  const lines = document.split("\n");
  const blocks: Block[] = [];
  let before = -1;
  for (let index = 0; index < lines.length; index += 1) {
    const [, fence, language = ""] = /^\s*(```+|~~~+)\s*(\S*)/.exec(lines[index] ?? "") ?? [];
    if (fence === undefined) continue;
    const above = lineAbove(lines, index);
    const end = lines.findIndex((line, at) => at > index && line.trim() === fence);
    const last = end === -1 ? lines.length : end;
    blocks.push({
      line: index + 1,
      language,
      text: lines.slice(index + 1, last).join("\n"),
      mark: /^<!-- (.*) -->$/.exec(lines[above] ?? "")?.[1],
      follows: above === before,
    });
    before = last;
    index = last;
  }
  return blocks;
}

function lineAbove(lines: readonly string[], index: number): number {
  let above = index - 1;
  while (lines[above]?.trim() === "") above -= 1;
  return above;
}
