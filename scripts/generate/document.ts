/** A file that the code writes: its path from the project's root, and its whole text. */
export interface GeneratedFile {
  readonly path: string;
  readonly text: string;
}

/** Writes one or more files' texts from the tables of the code. It writes nothing to the disk itself. */
export type Generator = () => GeneratedFile | GeneratedFile[] | Promise<GeneratedFile | GeneratedFile[]>;

const notice = "<!-- Generated from the code by scripts/generate.ts: change the tables there, not this file. -->";

/** A Markdown document of paragraphs, tables and headings, one blank line between them. */
export function markdown(title: string, ...blocks: readonly string[]): string {
  return `${[`# ${title}`, notice, ...blocks].join("\n\n")}\n`;
}

export function table(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [columns, columns.map(() => "---"), ...rows];
  return lines.map((cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`).join("\n");
}

export function code(text: string): string {
  return `\`${text}\``;
}

export function codeBlock(language: string, text: string): string {
  return `\`\`\`${language}\n${text}\n\`\`\``;
}
