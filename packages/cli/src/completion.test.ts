import { Option } from "@commander-js/extra-typings";
import { describe, expect, test } from "vitest";
import { candidates } from "./completion.ts";
import { program } from "./program.ts";
import { type AnyCommand, command, group } from "./shell/command.ts";

const root = program({
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: {},
  workingDirectory: "/",
  fetch,
  signal: new AbortController().signal,
  nowMs: () => 0,
  process,
  conclude: () => undefined,
});
const described = { summary: "is tried", examples: ["paybell try"], json: false };
const values = new Option("-s, --state <state>", "in this state").choices(["open", "closed"]);
const several = new Option("--scope <scope...>", "what it may do").choices(["read", "pull"]);
const list = command("list", described).addOption(values).addOption(several);
const data = command("data", described).argument("<backup>").option("--into <folder>", "the folder");
root.addCommand(group("try", "is tried", [list, data], data));

const partners = [{ value: "Corner", description: "01a1fc39-e58e-73fb-a49a-dce132454876" }];
const candidatesAfter = (...words: string[]) =>
  candidates(root, words, (placeholder) => (placeholder === "partner" ? Promise.resolve(partners) : undefined));
const valuesAfter = async (...words: string[]) => (await candidatesAfter(...words)).map(({ value }) => value);

describe("the candidates", () => {
  test("are the commands that begin as typed, then their subcommands, each with its summary", async () => {
    expect(await valuesAfter("re")).toEqual(["reversal", "restore"]);
    expect(await candidatesAfter("restore", "rel")).toEqual([
      { value: "release", description: "send what a restore holds, and let commands end that were in flight" },
    ]);
    expect(await valuesAfter("complet")).toEqual(["completion"]);
  });

  test("are the options of a command, and of the one that its group runs by default", async () => {
    expect(await valuesAfter("try", "list", "--s")).toEqual(["--state", "--scope"]);
    expect(await valuesAfter("try", "/backup", "--")).toEqual(["--into", "--help"]);
    expect(await valuesAfter("try", "list", "")).toEqual(["--state", "--scope", "--help"]);
  });

  test.each([
    ["the next word", ["--state", ""], ["open", "closed"]],
    ["the next word after its short form", ["-s", "o"], ["open"]],
    ["the same word, as zsh and fish pass it", ["--state=o"], ["--state=open"]],
    ["the next words, as bash splits it", ["--state", "="], ["open", "closed"]],
    ["a word after the sign, as bash splits it", ["--state", "=", "c"], ["closed"]],
    ["the second word of an option that takes several", ["--scope", "read", "p"], ["pull"]],
  ])("are the values of an option in %s", async (_, words, expected) => {
    expect(await valuesAfter("try", "list", ...words)).toEqual(expected);
  });

  test.each([
    ["an option", ["terminal", "list", "--partner", "C"]],
    ["an argument", ["partner", "show", ""]],
  ])("are the names of partners for %s that takes one", async (_, words) => {
    expect(await valuesAfter(...words)).toEqual(["Corner"]);
  });

  test("are none where a name of a file may be meant", async () => {
    expect(await valuesAfter("open", "")).toEqual([]);
    expect(await valuesAfter("try", "data", "--into", "")).toEqual([]);
  });

  test("have no character that a shell would treat as more than a letter", async () => {
    const walk = async (one: AnyCommand, path: readonly string[]): Promise<string[]> => {
      const lines = [[""], ["-"], ...one.options.map(({ long }) => [long ?? "", ""])];
      const here = await Promise.all(lines.map((words) => valuesAfter(...path, ...words)));
      const below = await Promise.all(one.commands.map((next) => walk(next, [...path, next.name()])));
      return [...here, ...below].flat();
    };
    const all = await walk(root, []);
    expect(all.length).toBeGreaterThan(300);
    expect(all.filter((value) => !/^[\w.+-]+$/.test(value))).toEqual([]);
  });
});
