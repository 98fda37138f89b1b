import { setTimeout as pause } from "node:timers/promises";
import { afterAll } from "vitest";
import { watchOpenResources } from "./open-resources.ts";

/** Closing takes a few turns of the event loop, and a child process a moment to end. */
const closingTimeoutMs = 2_000;
const pollMs = 10;

// A setup file: Vitest runs it before each test file, and hooks registered here run after all hooks of that file.
const resources = watchOpenResources();

afterAll(async () => {
  const deadlineMs = performance.now() + closingTimeoutMs;
  while (resources.list().length > 0 && performance.now() < deadlineMs) await pause(pollMs, undefined, { ref: false });
  const left = resources.list();
  if (left.length > 0) throw new Error(`this file left open:\n${left.join("\n")}`);
});
