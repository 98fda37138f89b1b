import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

export interface Runtime {
  readonly name: string;
  /** Undefined where the machine does not have it. */
  readonly command: readonly [path: string, ...args: string[]] | undefined;
}

/** The other runtimes that the partner's packages promise to run on. */
export function findRuntimes(path: string): Runtime[] {
  const find = (name: string) =>
    path
      .split(delimiter)
      .filter((directory) => directory !== "")
      .map((directory) => join(directory, name))
      .find((candidate) => existsSync(candidate));
  const bun = find("bun");
  const deno = find("deno");
  return [
    { name: "Bun", command: bun === undefined ? undefined : [bun] },
    { name: "Deno", command: deno === undefined ? undefined : [deno, "run", "--allow-read", "--no-prompt"] },
  ];
}
