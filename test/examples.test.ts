import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { type ReceiverOptions, receiver } from "@paybell/partner";
import { nodeHandler } from "@paybell/partner/node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "./support/database.ts";
import { comparable, type Example, examplesOf, readDocuments } from "./support/documents.ts";
import { freePort } from "./support/ports.ts";
import { TerminalScreen } from "./support/terminal.ts";

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
let sandbox: TerminalScreen;
let sandboxEnded: Promise<number | null>;
let database: TestDatabase;
let readers: Server;
let env: NodeJS.ProcessEnv;
/** Text of the documents, and its replacement in this test. */
let ports: readonly (readonly [written: RegExp, here: number])[];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "paybell-examples-"));
  await chmod(folder, 0o711);
  // The reader is in a checkout with the packages installed and with a database.
  await symlink(join(root, "node_modules"), join(folder, "node_modules"));
  const paybell = `#!/bin/sh\nexec "${process.execPath}" --conditions=paybell-source "${cli}" "$@"\n`;
  await writeFile(join(folder, "paybell"), paybell, { mode: 0o755 });
  await writeFile(join(folder, "package.json"), JSON.stringify({ scripts: { paybell: "paybell" } }));
  database = await createDatabase();
  const PATH = [folder, dirname(process.execPath), process.env["PATH"]].join(delimiter);
  env = { ...process.env, PATH, DATABASE_URL: database.url, NODE_OPTIONS: "--conditions=paybell-source" };
  // One of the examples is a time-out, and a stop waits for what the acquirer has.
  const settings = {
    PAYBELL_PORT: String(await freePort()),
    PAYBELL_ACQUIRER_TIMEOUT_MS: "2000",
    DATABASE_URL: undefined,
  };
  sandbox = new TerminalScreen(folder, { ...env, ...settings });
  sandboxEnded = sandbox.start("paybell sandbox");
  await sandbox.showsTogether("Its IPN appears here. Ctrl-C stops.");
  const { baseUrl, ...keys } = JSON.parse(await readFile(join(folder, ".paybell/sandbox.json"), "utf8"));
  readers = await startReaders(keys);
  ports = [
    [/(?<=127\.0\.0\.1:|localhost:)7420/g, Number(new URL(baseUrl).port)],
    [/(?<=127\.0\.0\.1:|localhost:)3000/g, (readers.address() as AddressInfo).port],
    [/\b8080\b/g, await freePort()],
  ];
});
afterAll(async () => {
  await sandbox.interrupt();
  expect(await sandboxEnded, sandbox.output).toBe(0);
  await once(readers.close(), "close");
  await rm(folder, { recursive: true, force: true });
  await database.drop();
});

/** The reader's own server, if a document gives only its address. */
async function startReaders(keys: ReceiverOptions): Promise<Server> {
  const { encryptionKey, signingKey, webhookSecret } = keys;
  const server = createServer(
    nodeHandler(receiver({ encryptionKey, signingKey, webhookSecret }), () => undefined, { log: () => undefined }),
  );
  await once(server.listen(0, "127.0.0.1"), "listening");
  return server;
}

/** The text of an example, with the ports that are used here. */
function here(text: string): string {
  return ports.reduce((changed, [written, port]) => changed.replaceAll(written, String(port)), text);
}

interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs it as a reader would, in the folder that has .paybell. */
async function run(language: "sh" | "js", text: string): Promise<Ran> {
  const file = join(folder, language === "sh" ? "example.sh" : "example.mjs");
  await writeFile(file, here(text));
  const [program, ...args] = language === "sh" ? ["bash", "-euo", "pipefail", file] : [process.execPath, file];
  const child = spawn(program, args, { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk) => (stdout += chunk));
  child.stderr.on("data", (chunk) => (stderr += chunk));
  const exitCode = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code: exitCode, stdout, stderr };
}

/** `terminal` is the document's second terminal, for examples that keep running. */
async function expectAsWritten(example: Example, terminal: TerminalScreen): Promise<void> {
  const { place, text } = example;
  if (example.does === "write") return writeFile(join(folder, example.file), here(text));
  if (example.does === "start") return void terminal.start(here(text));
  if (example.does === "show") return (example.by === "it" ? terminal : sandbox).showsTogether(text);
  if (example.does === "quote") return expect(await readFile(join(root, example.from), "utf8"), place).toContain(text);
  const { code, stdout, stderr } = await run(example.language, text);
  expect(code, `${place} failed: ${stderr}${stdout}`).toBe(0);
  if (example.answer === undefined) return;
  const { language, text: answer } = example.answer;
  expect(comparable(language, stdout), place).toBe(comparable(language, answer));
}

describe("the runner of examples", () => {
  const examples = examplesOf(fixture);
  let terminal: TerminalScreen;
  beforeAll(() => {
    terminal = new TerminalScreen(folder, env);
  });
  afterAll(() => terminal.interrupt());

  test("finds the marked ones with their answers, and no others", () => {
    expect(examples.map(({ place, does }) => [place, does])).toEqual([
      ["guide.md:7", "run"],
      ["guide.md:19", "run"],
      ["guide.md:31", "run"],
      ["guide.md:39", "write"],
      ["guide.md:46", "start"],
      ["guide.md:52", "show"],
      ["guide.md:60", "show"],
      ["guide.md:68", "quote"],
    ]);
    const answers = examples.map((example) => (example.does === "run" ? example.answer?.language : undefined));
    expect(answers.slice(0, 3)).toEqual(["json", "text", undefined]);
  });

  test("passes an example whose output matches", async () => {
    for (const example of examples) await expectAsWritten(example, terminal);
  });

  test.each([
    ["another JSON answer", 0, (text: string) => text.replace("true", "false")],
    ["another text", 1, (text: string) => text.replace(" at ", " on ")],
  ])("fails for %s", async (_, index, change) => {
    const example = examples[index];
    if (example?.does !== "run" || example.answer === undefined) throw new Error("the fixture has no such example");
    const answer = { ...example.answer, text: change(example.answer.text) };
    await expect(expectAsWritten({ ...example, answer }, terminal)).rejects.toThrow(example.place);
  });

  test("fails for a quotation that the file does not contain", async () => {
    const quote = { ...fixtureExample("quote"), text: "nobody wrote this" };
    await expect(expectAsWritten(quote, terminal)).rejects.toThrow(quote.place);
  });

  test("fails for lines that are never shown", async () => {
    const ended = new TerminalScreen(folder, env);
    await ended.run("echo something else");
    await expect(expectAsWritten(fixtureExample("show"), ended)).rejects.toThrow("it never showed");
  });

  test("fails for a command that fails, in the middle too", async () => {
    const failing = { ...fixtureExample("run"), place: "guide.md:1", language: "sh", text: "false\ntrue" } as const;
    await expect(expectAsWritten(failing, terminal)).rejects.toThrow("guide.md:1 failed");
  });

  test.each(["<!-- run -->\n\nText.\n", "<!-- run -->\n\n```python\n1\n```\n"])("refuses %j", (text) => {
    expect(() => examplesOf({ path: "x.md", text })).toThrow("x.md");
  });

  function fixtureExample<Does extends Example["does"]>(does: Does): Extract<Example, { does: Does }> {
    const found = examples.find((example) => example.does === does);
    if (found === undefined) throw new Error(`the fixture has no example to ${does}`);
    return found as Extract<Example, { does: Does }>;
  }
});

// The examples in order, each document from top to bottom: an example may build on the one above it.
describe.each(documents)("$path", ({ examples }) => {
  let terminal: TerminalScreen;
  beforeAll(() => {
    terminal = new TerminalScreen(folder, env);
  });
  afterAll(() => terminal.interrupt());

  test.each(examples.map((example) => [example.place, example.does, example] as const))(
    "%s: %s",
    async (_place, _does, example) => {
      await expectAsWritten(example, terminal);
    },
  );
});
