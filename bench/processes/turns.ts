import { writeSync } from "node:fs";
import { createHistogram } from "node:perf_hooks";

/**
 * Loaded into a process (`--import`) whose turns of the event loop are measured, in processor time of its thread: other
 * programs on the machine do not count. A sample has what ran since the one before: a turn, and up to a millisecond.
 * SIGUSR2 begins anew, and the end prints the figures.
 */
const sampleEveryMs = 1;
const turnsUs = createHistogram();
let beforeUs = 0;
let began = process.cpuUsage();
let memoryMbIdle = 0;

function sample(): void {
  const { user, system } = process.threadCpuUsage();
  turnsUs.record(Math.max(1, user + system - beforeUs));
  beforeUs = user + system;
}

setInterval(sample, sampleEveryMs).unref();
process.on("SIGUSR2", () => {
  sample();
  turnsUs.reset();
  began = process.cpuUsage();
  memoryMbIdle = process.memoryUsage.rss() / 2 ** 20;
});
process.on("exit", () => {
  const { user, system } = process.cpuUsage(began);
  const turnMs = (percentile: number) => turnsUs.percentile(percentile) / 1_000;
  const memoryMbMax = process.resourceUsage().maxRSS / 1_024;
  const turns = { turnMs999: turnMs(99.9), turnMsMax: turnMs(100) };
  writeSync(1, `turns ${JSON.stringify({ memoryMbIdle, cpuS: (user + system) / 1e6, ...turns, memoryMbMax })}\n`);
});
