export { type RunContext, runAuditVerify, runCheck, runSandbox, runServe } from "./app/run.ts";
