import { spawn } from "node:child_process";
import { test } from "vitest";

test("a child process that is never ended", () => {
  // Ends by itself when this process does: its standard input closes.
  spawn("cat", [], { stdio: ["pipe", "ignore", "ignore"] });
});
