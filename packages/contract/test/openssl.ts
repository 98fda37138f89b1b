import { spawnSync } from "node:child_process";
import type { TestContext } from "vitest";

const version = spawnSync("openssl", ["version"], { encoding: "utf8" });

/** Skips a test, with a reason, if the machine has no openssl: it must not pass without a comparison. */
export function requireOpenssl(context: TestContext): void {
  if (version.status === 0) return;
  process.stderr.write(`NOT COMPARED with openssl, which is not installed: ${context.task.name}\n`);
  context.skip("the openssl binary is not installed");
}

/** Returns the output of an openssl command. Throws unless it exits with 0. */
export function openssl(args: readonly string[], input: Buffer): Buffer {
  const { status, stdout, stderr } = spawnSync("openssl", args, { input, maxBuffer: 1 << 24 });
  if (status !== 0) throw new Error(`openssl ${args[0]} ended with ${status}: ${stderr}`);
  return stdout;
}
