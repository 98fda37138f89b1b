import { key32, listOf, postgresUrl, text, token, wholeNumber } from "./kind.ts";
import { optional, setting } from "./setting.ts";

/** Who may change what: the owner of the schema, the master key, operators, and how long their audit is kept. */
export const accessSettings = {
  migrationDatabaseUrl: optional({
    name: "PAYBELL_MIGRATION_DATABASE_URL",
    kind: postgresUrl,
    meaning:
      "The same database as DATABASE_URL, as the role that owns the schema. With it, the role of DATABASE_URL only " +
      "reads and writes rows. `paybell migrate` needs it; a service that starts after that command does not.",
    secret: true,
  }),
  masterKey: optional({
    name: "PAYBELL_MASTER_KEY",
    kind: key32,
    meaning:
      "Key under which the partners' keys are stored. `paybell serve` requires it; `openssl " +
      "rand -base64 32` makes one.",
    secret: true,
  }),
  masterKeyFile: optional({
    name: "PAYBELL_MASTER_KEY_FILE",
    kind: text,
    meaning:
      "File that holds the master key, in place of PAYBELL_MASTER_KEY: a process list and a crash report show the " +
      "environment, and no file.",
  }),
  operatorTokens: setting({
    name: "PAYBELL_OPERATOR_TOKEN",
    kind: listOf(token, "tokens, each one that cannot be guessed, as `openssl rand -hex 32` makes one"),
    default: [],
    meaning:
      "Bearer token of the operator API. Two of them during a rotation. Not set: `paybell serve` " +
      "makes one and keeps it in PAYBELL_HOME/operator.token.",
    secret: true,
  }),
  auditDays: setting({
    name: "PAYBELL_AUDIT_DAYS",
    kind: wholeNumber(90, 36_500),
    default: 1_095,
    unit: "days",
    meaning: "How long entries of the audit are kept.",
  }),
};
