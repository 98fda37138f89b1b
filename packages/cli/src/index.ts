export type { HostEnvironment } from "./context.ts";
export { type ExitCode, exitCodes } from "./exit-codes.ts";
export { run } from "./run.ts";
