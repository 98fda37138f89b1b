import { spawnSync } from "node:child_process";

/** Returns the output of an openssl command. Throws unless it exits with 0. */
export function openssl(args: readonly string[], input: Buffer): Buffer {
  const { status, stdout, stderr } = spawnSync("openssl", args, { input, maxBuffer: 1 << 24 });
  if (status !== 0) throw new Error(`openssl ${args[0]} ended with ${status}: ${stderr}`);
  return stdout;
}
