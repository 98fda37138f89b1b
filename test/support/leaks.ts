import { setTimeout as pause, setImmediate as turn } from "node:timers/promises";
import { afterAll } from "vitest";
import { forgetLastId } from "../../packages/server/src/ids.ts";
import { watchOpenResources } from "./open-resources.ts";

/**
 * Closing takes a few turns of the event loop, and a child process a moment to end: about 5 s of looks, which a paused
 * machine does not shorten.
 */
const looksMax = 500;
const lookEveryMs = 10;

// A setup file: Vitest runs it before each test file, and hooks registered here run after all hooks of that file.
// A process runs many files, so each starts with the state of a new process.
forgetLastId();
const resources = watchOpenResources();

afterAll(async () => {
  // Node reports in the next turn what was cleared in this one.
  await turn();
  let left = resources.list();
  for (let looks = 0; left.length > 0 && looks < looksMax; looks += 1) {
    await pause(lookEveryMs, undefined, { ref: false });
    left = resources.list();
  }
  // The next file of this process is watched by a hook of its own.
  resources.stop();
  if (left.length > 0) throw new Error(`this file left open:\n${left.join("\n")}`);
});
