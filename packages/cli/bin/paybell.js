#!/usr/bin/env node
// Plain JavaScript, so that an old Node can run it and print one clear line instead of a syntax error.
import { existsSync } from "node:fs";
import * as nodeModule from "node:module";
import { fileURLToPath } from "node:url";

const source = new URL("../src/main.ts", import.meta.url);
const built = new URL("../dist/main.js", import.meta.url);
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
const runs = (wantedMajor, wantedMinor) => major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);

// Node opens an inspector for any process that may send this signal: it reads every key in memory.
process.on("SIGUSR1", () => undefined);

// In the repository the sources run by type stripping, found by the condition `paybell-source`.
if (existsSync(source)) {
  if (!runs(22, 18)) {
    process.stderr.write(
      `paybell needs Node 22.18 or newer and found ${process.versions.node}. Run "npm ci" without --omit: it installs a Node that "npm start" and "npm run paybell -- …" use.\n`,
    );
    process.exit(1);
  }
  if (process.execArgv.includes("--conditions=paybell-source")) {
    // Types are stripped once, and not at every start: that is faster, and uses 31 MB less.
    nodeModule.enableCompileCache(fileURLToPath(new URL("../../../node_modules/.cache/paybell", import.meta.url)));
    await import(source.href);
  } else {
    const args = [
      "--conditions=paybell-source",
      ...process.execArgv,
      fileURLToPath(import.meta.url),
      ...process.argv.slice(2),
    ];
    // This process becomes that one: signals reach it once, and its end is this one's. Windows has no such call.
    if (process.platform !== "win32") process.execve(process.execPath, [process.execPath, ...args], process.env);
    const { spawn } = await import("node:child_process");
    const child = spawn(process.execPath, args, { stdio: "inherit" });
    // The console sends Ctrl-C to both.
    process.on("SIGINT", () => undefined);
    child.on("exit", (code) => process.exit(code ?? 1));
  }
} else if (!runs(20, 19)) {
  process.stderr.write(`paybell needs Node 20.19 or newer and found ${process.versions.node}.\n`);
  process.exit(1);
} else await import(built.href);
