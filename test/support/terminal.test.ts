import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, watch } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { TerminalScreen } from "./terminal.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "paybell-terminal-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test("runs the next script in the folder of the last one, and reports failures", async () => {
  const terminal = new TerminalScreen(folder);
  await terminal.run("mkdir below && cd below");
  await expect(terminal.run("pwd; false")).rejects.toThrow(`it ended with 1:\n${folder}/below`);
});

test("shows lines as they come, and ends at Ctrl-C", async () => {
  const terminal = new TerminalScreen(folder);
  const ended = terminal.start("bash -c 'echo ready in 1.0 s; exec sleep 600'");
  await terminal.shows("ready in 2.5 s");
  await terminal.interrupt();
  expect(await ended).not.toBe(0);
  await expect(terminal.shows("ready in 2.5 s")).rejects.toThrow("it never showed");
});

test("leaves nothing behind when the process of its test is killed", async () => {
  // It handles SIGINT itself, as the sandbox does.
  const script = `trap 'echo ended > "${folder}/ended"; exit' INT; echo runs; while true; do sleep 0.1; done`;
  const program = `import { TerminalScreen } from ${JSON.stringify(join(import.meta.dirname, "terminal.ts"))};
    const terminal = new TerminalScreen(${JSON.stringify(folder)});
    void terminal.start(${JSON.stringify(script)});
    await terminal.shows("runs");
    process.stdout.write("seen\\n");`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(createInterface(child.stdout), "line");
  const ended = Promise.withResolvers<void>();
  // It begins at once: that of node:fs/promises begins only when its first change is asked for.
  const changes = watch(folder, (_, name) => {
    if (name === "ended") ended.resolve();
  });
  onTestFinished(() => changes.close());

  child.kill("SIGKILL");

  await ended.promise;
});
