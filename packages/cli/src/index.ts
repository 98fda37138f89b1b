export { type ExitCode, exitCodes } from "./exit-codes.ts";
export { run } from "./run.ts";
export type { Machine } from "./world.ts";
