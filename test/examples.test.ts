import { spawn } from "node:child_process";
import { chmod, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "./support/database.ts";
import { comparable, type Example, examplesOf, readDocuments } from "./support/documents.ts";
import { freePort, type SpokenProcess, spawnPaybell } from "./support/instance.ts";

const root = join(import.meta.dirname, "..");
const cli = join(root, "packages/cli/bin/paybell.js");
const fixture = {
  path: "guide.md",
  text: await readFile(join(import.meta.dirname, "support/document-fixtures/guide.md"), "utf8"),
};
const documents = (await readDocuments(root))
  .map((document) => ({ path: document.path, examples: examplesOf(document) }))
  .filter(({ examples }) => examples.length > 0);

let folder: string;
let port: number;
let sandbox: SpokenProcess;
let database: TestDatabase;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "paybell-examples-"));
  await chmod(folder, 0o711);
  // As if the reader had installed the packages there, and had a database.
  await symlink(join(root, "node_modules"), join(folder, "node_modules"));
  const paybell = `#!/bin/sh\nexec "${process.execPath}" --conditions=paybell-source "${cli}" "$@"\n`;
  await writeFile(join(folder, "paybell"), paybell, { mode: 0o755 });
  database = await createDatabase();
  port = await freePort();
  sandbox = spawnPaybell(["sandbox"], {
    PAYBELL_HOME: join(folder, ".paybell"),
    PAYBELL_PORT: String(port),
    // One of the examples is a time-out, and a stop waits for what the acquirer has.
    PAYBELL_ACQUIRER_TIMEOUT_MS: "2000",
  });
  await sandbox.said((line) => line.match(/ready in/));
});
afterAll(async () => {
  sandbox.signal("SIGTERM");
  expect(await sandbox.exited, sandbox.output()).toBe(0);
  await rm(folder, { recursive: true, force: true });
  await database.drop();
});

interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs it as a reader would: in the folder that holds .paybell, with the port that this sandbox has. */
async function run({ language, code }: Pick<Example, "language" | "code">): Promise<Ran> {
  const here = code.replaceAll(/(127\.0\.0\.1|localhost):7420/g, `$1:${port}`);
  const file = join(folder, language === "sh" ? "example.sh" : "example.mjs");
  await writeFile(file, here);
  const node = [process.execPath, "--conditions=paybell-source", file];
  const command = language === "sh" ? ["bash", "-euo", "pipefail", file] : node;
  const [program = "", ...args] = command;
  const PATH = [folder, dirname(process.execPath), process.env["PATH"]].join(delimiter);
  const env = { ...process.env, PATH, DATABASE_URL: database.url };
  const child = spawn(program, args, { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk) => (stdout += chunk));
  child.stderr.on("data", (chunk) => (stderr += chunk));
  const exitCode = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code: exitCode, stdout, stderr };
}

async function expectAsWritten(example: Example): Promise<void> {
  const { code, stdout, stderr } = await run(example);
  expect(code, `${example.place} failed: ${stderr}${stdout}`).toBe(0);
  if (example.answer === undefined) return;
  const { language, text } = example.answer;
  expect(comparable(language, stdout), example.place).toBe(comparable(language, text));
}

describe("the runner of examples", () => {
  const examples = examplesOf(fixture);

  test("finds the marked ones with their answers, and no others", () => {
    expect(examples.map(({ place, language }) => [place, language])).toEqual([
      ["guide.md:5", "sh"],
      ["guide.md:17", "js"],
      ["guide.md:29", "sh"],
    ]);
    expect(examples.map(({ answer }) => answer?.language)).toEqual(["json", "text", undefined]);
  });

  test("passes what answers as written", async () => {
    for (const example of examples) await expectAsWritten(example);
  });

  test.each([
    ["another JSON answer", 0, (text: string) => text.replace("true", "false")],
    ["another text", 1, (text: string) => text.replace(" at ", " on ")],
  ])("fails for %s", async (_, index, change) => {
    const example = examples[index];
    if (example?.answer === undefined) throw new Error("the fixture has no such example");
    const answer = { ...example.answer, text: change(example.answer.text) };
    await expect(expectAsWritten({ ...example, answer })).rejects.toThrow(example.place);
  });

  test("fails for a command that fails, in the middle too", async () => {
    const failing = { place: "guide.md:1", language: "sh", code: "false\ntrue", answer: undefined } as const;
    await expect(expectAsWritten(failing)).rejects.toThrow("guide.md:1 failed");
  });

  test("refuses a mark that stands before nothing to run", () => {
    expect(() => examplesOf({ path: "x.md", text: "<!-- run -->\n\nText.\n" })).toThrow("x.md:1");
  });
});

// In their order, each document's from top to bottom: an example may go on from the one above it.
for (const { path, examples } of documents) {
  test.each(examples.map((example) => [example.place, example] as const))(
    `${path}: the example at %s`,
    async (_, example) => {
      await expectAsWritten(example);
    },
  );
}
