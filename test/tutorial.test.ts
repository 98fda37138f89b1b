import { execFile } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { packAll } from "./packages/project.ts";
import { freePort } from "./support/ports.ts";
import { patternOf } from "./support/shown.ts";
import { TerminalScreen } from "./support/terminal.ts";
import { stepsOf, type TutorialStep } from "./support/tutorial.ts";

const execute = promisify(execFile);
const root = join(import.meta.dirname, "..");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
const path = "docs/partner/tutorial.md";
const steps = stepsOf({ path, text: readFileSync(join(root, path), "utf8") });

let folder = "";
let ports: readonly (readonly [written: string, free: string])[] = [];
const terminals = new Map<string, TerminalScreen>();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "paybell-tutorial-"));
  // PostgreSQL's own user can enter, so its data are here, and are removed with the rest.
  chmodSync(folder, 0o711);
  ports = [
    ["7420", String(await freePort())],
    ["3000", String(await freePort())],
  ];
});

afterAll(async () => {
  for (const terminal of [...terminals.values()].reverse()) await terminal.interrupt();
  rmSync(folder, { recursive: true, force: true });
});

function terminalOf(name: string): TerminalScreen {
  const terminal = terminals.get(name) ?? new TerminalScreen(folder);
  terminals.set(name, terminal);
  return terminal;
}

/** The tutorial's text with ports that are free here. */
function here(text: string): string {
  return ports.reduce((changed, [written, free]) => changed.replaceAll(written, free), text);
}

async function doStep(step: TutorialStep): Promise<void> {
  if (step.does === "write") return writeFile(join(folder, "shop", step.file), here(step.text));
  const terminal = terminalOf(step.terminal);
  if (step.does === "run") return terminal.run(here(step.text));
  if (step.does === "standIn") return standIn(terminal, step.text);
  if (step.does === "start") {
    void terminal.start(`export PAYBELL_PORT=${ports[0]?.[1]}\n${here(enter(terminal, step.text))}`);
    return;
  }
  for (const line of step.text.split("\n").filter((shown) => shown !== "")) await terminal.shows(line);
}

/** Goes into the folders that the text enters, and returns its other lines. */
function enter(terminal: TerminalScreen, text: string): string {
  const cd = /^cd (\S+)$/gm;
  for (const [, to = ""] of text.matchAll(cd)) terminal.cwd = join(terminal.cwd, to);
  return text.replaceAll(cd, "");
}

/** Does what these lines do, without a network, and with the packages of `npm run pack` that all tests share. */
async function standIn(terminal: TerminalScreen, text: string): Promise<void> {
  for (const line of ["git clone", "npm run pack -- ../shop", "npm install ./*.tgz"]) expect(text).toContain(line);
  mkdirSync(join(folder, "paybell"));
  await pack(join(folder, "shop"));
  await install(join(folder, "shop"));
  enter(terminal, text);
}

async function pack(shop: string): Promise<void> {
  mkdirSync(shop);
  for (const { tarball } of (await packAll()).packed) cpSync(tarball, join(shop, basename(tarball)));
}

async function install(shop: string): Promise<void> {
  const modules = join(shop, "node_modules");
  const names = ["paybell", "paybell-contract", "paybell-partner", "paybell-server"];
  expect(readdirSync(shop).sort()).toEqual(names.map((name) => `${name}-${version}.tgz`));
  for (const name of names) {
    const target = join(modules, name.replace("paybell-", "@paybell/"));
    mkdirSync(target, { recursive: true });
    await execute("tar", ["-xzf", join(shop, `${name}-${version}.tgz`), "-C", target, "--strip-components=1"]);
  }
  mkdirSync(join(modules, ".bin"));
  symlinkSync("../paybell/bin/paybell.js", join(modules, ".bin/paybell"));
  link(modules);
  await writeFile(join(shop, "package.json"), '{"name": "shop", "version": "1.0.0", "type": "commonjs"}');
}

/** Third-party packages, as they are installed here. */
function link(modules: string): void {
  for (const name of readdirSync(join(root, "node_modules"))) {
    if (name === "paybell" || name === "@paybell" || existsSync(join(modules, name))) continue;
    symlinkSync(join(root, "node_modules", name), join(modules, name));
  }
}

describe("the reader of a tutorial", () => {
  test.each([
    ["a fence without a mark", "```sh\nls\n```", "x.md:1: the fence has no mark"],
    ["a mark without its fence", "<!-- terminal 1 -->\n\n<!-- terminal 2 -->", "has no fence"],
    ["a mark that it does not know", "<!-- terminal one -->\n\n```sh\nls\n```", "is no mark"],
  ])("refuses %s", (_, text, message) => {
    expect(() => stepsOf({ path: "x.md", text })).toThrow(message);
  });

  test("knows a line by what does not change", () => {
    const shown = patternOf("11:24:02  SALE  refId 260229891713  verified  → 204  12 ms");
    expect("05:26:12  SALE  refId 471130029930  verified  → 204  3 ms").toMatch(shown);
    expect("05:26:12  SALE  refId 471130029930  verified  → 500  3 ms").not.toMatch(shown);
  });
});

// The steps in order: each builds on the ones above it.
test.each(steps.map((step) => [step.place, step.does, step] as const))("%s: %s", async (_place, _does, step) => {
  await doStep(step);
});
