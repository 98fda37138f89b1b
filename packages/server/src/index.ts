export {
  type RunContext,
  runAlertsTest,
  runAuditExport,
  runAuditRotateKey,
  runAuditVerify,
  runCheck,
  runMasterKeyNew,
  runMasterKeyRotate,
  runMigrate,
  runSandbox,
  runServe,
} from "./app/run.ts";
export { type AcquirerTestOptions, runAcquirerTest } from "./app/run-acquirer-test.ts";
export { type RestoreArguments, runBackup, runRestore, runRestoreHold, runVerify } from "./app/run-backup.ts";
