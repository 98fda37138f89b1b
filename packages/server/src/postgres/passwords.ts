import { randomBytes } from "node:crypto";
import { access, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PostgresStartError } from "./start-error.ts";

/** The roles of the embedded PostgreSQL, least privileges last. */
export const databaseRoles = {
  /** Makes the others, and the database. The service never logs in as it. */
  superuser: "postgres",
  /** Owns the schema: migrations run as it. */
  owner: "paybell_owner",
  /** Reads and writes rows. */
  service: "paybell",
} as const;

type RoleKey = keyof typeof databaseRoles;

export type Passwords = Readonly<Record<RoleKey, string>>;

const fileName = "postgres-passwords.json";

/**
 * The passwords of the roles, in a file of the home that only its owner can read. Created before the data, so that
 * there are no data without a password.
 *
 * @throws PostgresStartError `passwords_missing` if there are data and no passwords
 */
export async function keptPasswords(home: string, dataDirectory: string): Promise<Passwords> {
  const path = join(home, fileName);
  const kept = await readFile(path, "utf8").catch(() => undefined);
  if (kept !== undefined) return readPasswords(kept, path);
  const hasData = await access(join(dataDirectory, "PG_VERSION")).then(
    () => true,
    () => false,
  );
  if (hasData) throw passwordsMissing(path, "is missing");
  const password = () => randomBytes(32).toString("base64url");
  const passwords: Passwords = { superuser: password(), owner: password(), service: password() };
  const draft = `${path}.draft`;
  await writeFile(draft, `${JSON.stringify(passwords, null, 2)}\n`, { mode: 0o600, flush: true });
  await rename(draft, path);
  return passwords;
}

function readPasswords(text: string, path: string): Passwords {
  try {
    const { superuser, owner, service } = JSON.parse(text) as Record<RoleKey, unknown>;
    if (typeof superuser === "string" && typeof owner === "string" && typeof service === "string") {
      return { superuser, owner, service };
    }
  } catch {
    // JSON.parse quotes what it read: a password must not get into an error.
  }
  throw passwordsMissing(path, "cannot be read");
}

/** The server has others than the home. */
export function passwordsRefused(home: string): PostgresStartError {
  return passwordsMissing(join(home, fileName), "has other ones");
}

function passwordsMissing(path: string, what: string): PostgresStartError {
  return new PostgresStartError(
    "passwords_missing",
    `PostgreSQL has data, and ${path}, with the passwords of its roles, ${what}.`,
    "Restore that file from a backup of PAYBELL_HOME: it belongs to the data.",
  );
}
