/**
 * A declaration without what only its author needs: line ends, indentation, the stars of comments, private members. Its
 * documentation stays, for editors to show.
 */
export function shortDeclaration(text: string): string {
  const parts = [...text.matchAll(part)];
  const short = parts.map(([, doc, literal, code = ""], at) => {
    // On the same line, TypeScript would take it for a comment on the preceding code.
    if (doc !== undefined) return `${at === 0 ? "" : "\n"}${shortDoc(doc)}`;
    return literal ?? shortCode(code, { afterDoc: isDoc(parts[at - 1]), beforeDoc: isDoc(parts[at + 1]) });
  });
  return short
    .join("")
    .replace(/;?\}/g, "}")
    .replace(/([=(:<,[])\|/g, "$1")
    .replace(/(?<=[{;])(?:private\b|#)[^;}]*;?/g, "");
}

/** A doc comment, a literal, or the code between those. */
const part = /(\/\*\*.*?\*\/)|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)|((?:[^"'`/]|\/(?!\*\*))+)/gs;

function isDoc(match: RegExpExecArray | undefined): boolean {
  return match?.[1] !== undefined;
}

function shortCode(code: string, { afterDoc, beforeDoc }: { afterDoc: boolean; beforeDoc: boolean }): string {
  if (/\/[/*]/.test(code)) throw new Error(`a comment that documents nothing stands within a type: ${code}`);
  const short = code
    .replace(/\s+/g, " ")
    .replace(/ ?([{}()[\]<>=:;,|&?]) ?/g, "$1")
    .replace(/\bexport declare /g, "export ")
    .replace(/\bfrom $/, "from");
  return short.slice(afterDoc && short.startsWith(" ") ? 1 : 0, beforeDoc && short.endsWith(" ") ? -1 : undefined);
}

/** Paragraphs and tags keep lines of their own, which editors need. */
function shortDoc(doc: string): string {
  const lines = doc.slice(3, -2).replace(/\n[ \t]*\*[ \t]?/g, "\n");
  const paragraphs = lines.trim().split(/\n\s*\n/);
  return `/** ${paragraphs.map((paragraph) => paragraph.replace(/\s*\n(?!@)\s*/g, " ")).join("\n\n")} */`;
}
