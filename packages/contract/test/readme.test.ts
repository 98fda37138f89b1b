import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

test("the README's example runs", () => {
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const example = /```ts\n([\s\S]*?)```/.exec(readme)?.[1] ?? "";
  const args = ["--conditions=paybell-source", "--input-type=module-typescript", "--eval", example];
  const { stdout, stderr } = spawnSync(process.execPath, args, {
    encoding: "utf8",
    cwd: new URL("..", import.meta.url),
  });
  expect(stderr).toBe("");
  expect(stdout).toBe("tx-1 SUCCESS\n");
});
