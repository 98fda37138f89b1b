export { type RunContext, runAuditVerify, runCheck, runSandbox, runServe } from "./app/run.ts";
export { type AcquirerTestOptions, runAcquirerTest } from "./app/run-acquirer-test.ts";
