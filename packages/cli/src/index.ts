export { run } from "./program.ts";
export type { HostEnvironment } from "./shell/context.ts";
export { type ExitCode, exitCodes } from "./shell/failure.ts";
