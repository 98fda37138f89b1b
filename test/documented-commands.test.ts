import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { program } from "../packages/cli/src/program.ts";
import { commandsIn, leaves, nowhere, parsed } from "./cli/parser.ts";
import { readDocuments } from "./support/documents.ts";

const repository = join(import.meta.dirname, "..");

describe("the documents", () => {
  test("show only commands that the parser accepts", async () => {
    const documents = await readDocuments(repository);
    const lines = documents.flatMap(({ path, text }) => shellLines(text).map((shell) => ({ path, shell })));
    expect(lines.length).toBeGreaterThan(10);
    for (const { path, shell } of lines) {
      for (const words of commandsIn(asTyped(shell))) {
        const taken = parsed(words).then(
          () => "",
          (error: Error) => error.message,
        );
        expect(await taken, `${path}: ${shell}`).toBe("");
      }
    }
  });

  test("name in their sentences only commands and options that exist", async () => {
    const root = program(nowhere);
    const documents = await readDocuments(repository);
    const named = documents.flatMap(({ path, text }) =>
      [...text.matchAll(/`paybell ([a-z][^`\n]*)`/g)].map(([, typed = ""]) => ({ path, typed })),
    );
    expect(named.length).toBeGreaterThan(100);
    for (const { path, typed } of named) {
      const words = typed.split(" ");
      const found = words.reduce((at, word) => at.commands.find((one) => one.name() === word) ?? at, root);
      expect(found, `${path}: ${typed}`).not.toBe(root);
      const known = leaves(found).flatMap(({ options }) => options.map(({ long }) => long));
      const given = words.filter((word) => word.startsWith("--") && word !== "--help");
      for (const word of given) expect(known, `${path}: ${typed}`).toContain(word);
    }
  });

  /** The shell's expansion is one word, whatever it contains. */
  function asTyped(shell: string): string {
    return shell.replace("npm run paybell -- ", "paybell ").replaceAll(/"\$\(node .*?'\)"/g, "a-word");
  }

  /** Lines of shell examples that begin with the command. */
  function shellLines(text: string): string[] {
    const fences = [...text.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, code = ""]) =>
      code.replaceAll(/\\\n\s*/g, " "),
    );
    return fences.flatMap((code) =>
      code.split("\n").filter((shell) => /^(?:npm run paybell -- |paybell )/.test(shell)),
    );
  }
});
