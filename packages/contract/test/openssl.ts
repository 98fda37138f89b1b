import { spawnSync } from "node:child_process";
import type { TestContext } from "vitest";

const version = spawnSync("openssl", ["version"], { encoding: "utf8" });

/** Ends a test as skipped, and says so, where the machine has no openssl: it must not pass without having compared. */
export function requireOpenssl(context: TestContext): void {
  if (version.status === 0) return;
  process.stderr.write(`NOT COMPARED with openssl, which is not installed: ${context.task.name}\n`);
  context.skip("the openssl binary is not installed");
}

/** The output of one openssl command; an exit other than 0 throws. */
export function openssl(args: readonly string[], input: Buffer): Buffer {
  const { status, stdout, stderr } = spawnSync("openssl", args, { input, maxBuffer: 1 << 24 });
  if (status !== 0) throw new Error(`openssl ${args[0]} ended with ${status}: ${stderr}`);
  return stdout;
}
