/** One step of a tutorial: an action of its reader, or an expected output. A comment before a fence says which. */
export type TutorialStep = { readonly place: string; readonly text: string } & (
  | { readonly does: "run" | "start" | "standIn" | "show"; readonly terminal: string }
  | { readonly does: "write"; readonly file: string }
);

/**
 * The steps of a tutorial, in their order.
 *
 * @throws for a fence without a mark, or a mark without its fence: it would not be run, and nobody would know
 */
export function stepsOf({ path, text }: { readonly path: string; readonly text: string }): readonly TutorialStep[] {
  const steps: TutorialStep[] = [];
  let mark: string | undefined;
  const lines = text.split("\n");
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] ?? "";
    const place = `${path}:${index + 1}`;
    const found = /^<!-- (.*) -->$/.exec(line)?.[1];
    if (found !== undefined) {
      if (mark !== undefined) throw new Error(`${place}: the mark above, "${mark}", has no fence`);
      mark = found;
      continue;
    }
    if (!line.startsWith("```")) continue;
    const end = lines.indexOf("```", index + 1);
    if (end === -1) throw new Error(`${place}: the fence has no end`);
    if (mark === undefined) throw new Error(`${place}: the fence has no mark`);
    steps.push(stepOf(mark, line.slice(3), place, lines.slice(index + 1, end).join("\n")));
    mark = undefined;
    index = end;
  }
  if (mark !== undefined) throw new Error(`${path}: the last mark, "${mark}", has no fence`);
  return steps;
}

function stepOf(mark: string, language: string, place: string, text: string): TutorialStep {
  const file = /^file ([\w.]+)$/.exec(mark)?.[1];
  if (file !== undefined) return { does: "write", file, place, text };
  const [, terminal = "", rest = "none"] = /^terminal (\d)(.*)$/.exec(mark) ?? [];
  const does = kinds[language === "text" ? "text" : "sh"][rest];
  if (does === undefined) throw new Error(`${place}: "${mark}" is no mark for a fence of ${language}`);
  return { does, terminal, place, text };
}

const kinds: Readonly<Record<"sh" | "text", Readonly<Record<string, "run" | "start" | "standIn" | "show">>>> = {
  sh: { "": "run", ", goes on": "start", ", without a network": "standIn" },
  text: { " shows": "show" },
};
