export { type RunContext, runCheck, runSandbox, runServe } from "./app/run.ts";
