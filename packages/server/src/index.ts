export { type AcquirerTestOptions, runAcquirerTest } from "./programs/acquirer-test.ts";
export { type RestoreArguments, runBackup, runRestore, runRestoreHold, runVerify } from "./programs/backup.ts";
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
} from "./programs/run.ts";
