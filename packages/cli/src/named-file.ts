import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { CommandContext } from "./context.ts";
import { Failure } from "./failure.ts";

/**
 * Reads a file named by the user.
 *
 * @param code of the failure
 * @throws Failure saying why it cannot be read
 */
export async function readNamedFile(context: Pick<CommandContext, "workingDirectory">, path: string, code: string) {
  return readFile(resolve(context.workingDirectory, path), "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new Failure(`${path} cannot be read: ${whyUnreadable(error)}.`, { code });
  });
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  ENOTDIR: "there is no such file",
  EISDIR: "it is a folder",
  EACCES: "you have no right to",
};

export function whyUnreadable({ code = "", message }: NodeJS.ErrnoException): string {
  return reasons[code] ?? (code === "" ? message : code);
}
