import { listOf, postgresUrl, wholeNumber } from "./kind.ts";
import { kmsSettings } from "./kms-settings.ts";
import { masterKeyText, token } from "./secret-kind.ts";
import { optional, setting } from "./setting.ts";

/** Access: the owner of the schema, the master key, operators, and the retention of their audit. */
export const accessSettings = {
  migrationDatabaseUrl: optional({
    name: "PAYBELL_MIGRATION_DATABASE_URL",
    kind: postgresUrl,
    meaning:
      "The same database as DATABASE_URL, as the role that owns the schema. With it, the role of DATABASE_URL only " +
      "reads and writes rows. `paybell migrate` needs it; a service that starts after that command does not.",
    secret: true,
  }),
  backupDatabaseUrl: optional({
    name: "PAYBELL_BACKUP_DATABASE_URL",
    kind: postgresUrl,
    meaning:
      "The server of DATABASE_URL, as a role with the attribute REPLICATION, for `paybell backup`. Not set: the role " +
      "of DATABASE_URL is used.",
    secret: true,
  }),
  masterKey: optional({
    name: "PAYBELL_MASTER_KEY",
    kind: masterKeyText,
    meaning:
      "Key under which the partners' keys are stored. `paybell serve` requires it; `openssl " +
      "rand -base64 32` makes one.",
    secret: true,
  }),
  masterKeyOthers: setting({
    name: "PAYBELL_MASTER_KEY_OTHERS",
    kind: listOf(masterKeyText, "master keys"),
    default: [],
    meaning:
      "While the master key is rotated: further keys, which only decrypt. " +
      "`paybell master-key rotate` encrypts their values again under PAYBELL_MASTER_KEY.",
    secret: true,
  }),
  ...kmsSettings,
  operatorTokens: setting({
    name: "PAYBELL_OPERATOR_TOKEN",
    kind: listOf(token, "tokens that cannot be guessed, such as `openssl rand -hex 32` prints"),
    default: [],
    meaning:
      "Bearer token of the operator API. Two of them during a rotation. Not set: `paybell serve` " +
      "creates one and keeps it in PAYBELL_HOME/operator.token.",
    secret: true,
  }),
  keyProposalMinutes: setting({
    name: "PAYBELL_KEY_PROPOSAL_MINUTES",
    kind: wholeNumber(0, 10_080),
    default: 0,
    unit: "minutes",
    meaning:
      "Two admins for a key: what one proposes, another confirms within this time. It also holds for another admin, " +
      "for lower protection of a partner, and for this rule. The first start with it sets the rule in the database, " +
      "for every instance; from then on two admins change it there (`paybell proposal rule`). 0: not set.",
  }),
  auditDays: setting({
    name: "PAYBELL_AUDIT_DAYS",
    kind: wholeNumber(90, 36_500),
    default: 1_095,
    unit: "days",
    meaning: "How long entries of the audit are kept.",
  }),
};
