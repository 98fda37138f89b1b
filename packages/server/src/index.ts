export {
  type RunContext,
  runAlertsTest,
  runAuditExport,
  runAuditVerify,
  runCheck,
  runMasterKeyNew,
  runMasterKeyRotate,
  runMigrate,
  runSandbox,
  runServe,
} from "./app/run.ts";
export { type AcquirerTestOptions, runAcquirerTest } from "./app/run-acquirer-test.ts";
