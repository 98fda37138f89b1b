import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { run } from "../ops/files.ts";
import { compiledCode } from "../support/instance.ts";
import { needs, pathOf } from "../support/programs.ts";

// A shell that evaluates this makes a file.
const hostile = (folder: string) =>
  `Runs \`touch ${folder}/backticks\` and $(touch ${folder}/dollar) "$(touch ${folder}/quoted)"\n` +
  `and \`touch ${folder}/second-line\` on a line of its own`;
const prompt = "ready> ";

let folder: string;
let marks: string;
let env: NodeJS.ProcessEnv;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "paybell-completion-"));
  marks = join(folder, "marks");
  mkdirSync(marks);
  const program = join(import.meta.dirname, "completion-fixtures/hostile.ts");
  const node = `exec "${process.execPath}" --conditions=paybell-source "${program}" "$@"`;
  writeFileSync(join(folder, "paybell"), `#!/bin/sh\necho "$*" >> "${folder}/calls"\n${node}\n`, { mode: 0o755 });
  env = {
    PATH: `${folder}${delimiter}${process.env["PATH"]}`,
    HOME: folder,
    ZDOTDIR: folder,
    NODE_COMPILE_CACHE: compiledCode,
    TERM: "xterm",
    INPUTRC: "/dev/null",
    LANG: "C.UTF-8",
    TEST_DESCRIPTION: hostile(marks),
  };
});
afterEach(() => rmSync(folder, { recursive: true }));

/** An interactive shell at a terminal of its own. */
class Terminal {
  readonly #child: ChildProcess;
  readonly #listeners = new Set<() => void>();
  #shown = "";

  constructor(command: string) {
    this.#child = spawn(pathOf("script"), ["-qfec", `stty cols 200; exec ${command}`, "/dev/null"], {
      env,
      cwd: folder,
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      this.#shown += chunk;
      for (const listener of this.#listeners) listener();
    });
  }

  /** Waits until this is shown. */
  until(text: string): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (!this.#shown.includes(text)) return;
        this.#listeners.delete(look);
        resolve();
      };
      this.#listeners.add(look);
      look();
    });
  }

  async end(): Promise<void> {
    const ended = once(this.#child, "close");
    this.#child.stdin?.end("\x15exit\r");
    await ended;
  }

  /** Completes a line, and clears it. @returns everything that was shown meanwhile */
  async complete(line: string, last: string): Promise<string> {
    await this.until(prompt);
    this.#shown = "";
    this.#child.stdin?.write(`${line}\t`);
    await this.until(last);
    // The shell takes its next command when the completion has ended.
    this.#child.stdin?.write("\x15echo en''ded\r");
    await this.until("ended");
    const shown = this.#shown;
    await this.until(`ended\r\n`);
    return shown;
  }
}

function startBash(): Terminal {
  const settings = ["show-all-if-ambiguous on", "completion-query-items 0", "page-completions off", "bell-style none"];
  const lines = [...settings.map((one) => `bind 'set ${one}'`), `PS1='${prompt}'`, "source <(paybell completion bash)"];
  writeFileSync(join(folder, "bashrc"), `${lines.join("\n")}\n`);
  return new Terminal(`"${pathOf("bash")}" --noprofile --rcfile "${join(folder, "bashrc")}" -i`);
}

function startZsh(): Terminal {
  const settings = ["autoload -Uz compinit", "compinit -u -D", "LISTMAX=10000", "unsetopt beep prompt_sp"];
  const lines = [...settings, `PS1='${prompt}'`, "source <(paybell completion zsh)"];
  writeFileSync(join(folder, ".zshrc"), `${lines.join("\n")}\n`);
  return new Terminal(`"${pathOf("zsh")}" -i`);
}

/** Fish has a command for what TAB shows. */
async function completeInFish(line: string): Promise<string> {
  const script = "paybell completion fish | source; complete --do-complete $argv[1]";
  return (await run(pathOf("fish"), ["--no-config", "-c", script, line], { env, cwd: folder })).stdout;
}

/** Completes a line; resolves to everything that is shown, at least until `last`. */
type Complete = (line: string, last: string) => Promise<string>;

const atTerminal = (start: () => Terminal) => (): Complete => {
  const terminal = start();
  onTestFinished(() => terminal.end());
  return (line, last) => terminal.complete(line, last);
};

const shells = [
  { name: "bash", needed: needs("bash", "script"), start: atTerminal(startBash) },
  { name: "zsh", needed: needs("zsh", "script"), start: atTerminal(startZsh) },
  { name: "fish", needed: needs("fish"), start: (): Complete => completeInFish },
];

for (const { name, needed, start } of shells) {
  describe(`completion in ${name}`, needed, () => {
    test("lists the subcommands, the options, the values of an option, and files where no value is known", async () => {
      const complete = start();
      const subcommands = await complete("paybell restore ", "release");
      for (const subcommand of ["data", "hold", "reconcile", "release"]) expect(subcommands).toContain(subcommand);
      const options = await complete("paybell restore /backup --", "--wal");
      for (const option of ["--into", "--to", "--wal", "--help"]) expect(options).toContain(option);
      const values = await complete("paybell endpoint list --state ", "open");
      for (const value of ["closed", "gone", "open"]) expect(values).toContain(value);
      writeFileSync(join(folder, "partner-of-the-test.json"), "{}");
      const file = "partner-of-the-test.json";
      expect(await complete("paybell open partner-of", file)).toContain(file);
      // The descriptions of `restore` have commands in backticks, one of which releases what is held.
      const calls = readFileSync(join(folder, "calls"), "utf8").trimEnd().split("\n");
      expect(calls.filter((call) => !/^complet(?:e --|ion) /.test(call))).toEqual([]);
    });

    test("runs nothing that a description, or the line before the word, contains", async () => {
      const complete = start();
      const commands = await complete("paybell hostile ", "second");
      expect(commands).toContain("first");
      const options = await complete("paybell hostile first --", "--two");
      expect(options).toContain("--one");
      // Without spaces, which would end the word.
      const flag = `--x=$(touch\${IFS}${marks}/flag)=`;
      const line = `paybell hostile $(touch ${marks}/typed) \`touch ${marks}/backticks\` ${flag} --`;
      expect(await complete(line, "--help")).toContain("--help");
      expect(readdirSync(marks)).toEqual([]);
    });
  });
}
