import { listOf, oneOf, postgresUrl, text, url, wholeNumber } from "./kind.ts";
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
  kms: optional({
    name: "PAYBELL_KMS",
    kind: oneOf(["vault"]),
    meaning:
      "Key service that unwraps the master key at each start: `vault` is the transit engine of Vault or OpenBao. The " +
      "master key is then what `paybell master-key new` prints, and useless without the service.",
  }),
  kmsUrl: optional({
    name: "PAYBELL_KMS_URL",
    kind: url("https:", "http:"),
    meaning: "Where the key service is, such as https://vault.internal:8200.",
  }),
  kmsMount: setting({
    name: "PAYBELL_KMS_MOUNT",
    kind: text,
    default: "transit",
    meaning: "Path at which the transit engine of the key service is mounted.",
  }),
  kmsKey: setting({
    name: "PAYBELL_KMS_KEY",
    kind: text,
    default: "paybell",
    meaning: "Name of the key in the transit engine.",
  }),
  kmsTokenFile: optional({
    name: "PAYBELL_KMS_TOKEN_FILE",
    kind: text,
    meaning:
      "File with the token for the key service. The token's policy needs `update` on `decrypt`, and on `encrypt` to " +
      "make a key.",
  }),
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
