export { run } from "./run.ts";
export type { HostEnvironment } from "./shell/command.ts";
export { type ExitCode, exitCodes } from "./shell/failure.ts";
