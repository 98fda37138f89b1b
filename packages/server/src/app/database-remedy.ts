const untrusted =
  "Add sslrootcert=<file> to DATABASE_URL: the PEM certificate of the authority that issued the server's certificate.";
const dates =
  "Renew the server's certificate and reload the server. If its dates are right, correct this machine's clock.";

/** By the codes of PostgreSQL and of Node. */
const remedies: Readonly<Record<string, string>> = {
  "28P01":
    "Correct the password in PGPASSWORD or DATABASE_URL. If it is lost, set another one in psql: \\password <role>",
  "28000":
    "Allow this role and this machine in the server's pg_hba.conf: hostssl <database> <role> <address>/32 " +
    "scram-sha-256. Then reload the server. If it says `no encryption`, add sslmode=verify-full to DATABASE_URL.",
  "3D000": "Create the database, or correct its name in DATABASE_URL.",
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  ERR_TLS_CERT_ALTNAME_INVALID:
    "Name the server in DATABASE_URL as its certificate does, or issue a certificate for the name that is there.",
  CERT_HAS_EXPIRED: dates,
  CERT_NOT_YET_VALID: dates,
  ENOENT: "Correct the file that sslrootcert, sslcert or sslkey in DATABASE_URL names.",
};

/** By the driver's messages, which have no code. */
const saying: readonly (readonly [RegExp, string])[] = [
  [/password must be a (non-empty )?string/, "Set the role's password in PGPASSWORD, or in DATABASE_URL."],
  [
    /does not support SSL/,
    "Turn on TLS in the server's postgresql.conf: ssl = on, ssl_cert_file, ssl_key_file. Then reload the server.",
  ],
];

/** The next step after a connection to the database failed. */
export function databaseRemedy(failure: Error): string {
  const { code = "", message } = failure as NodeJS.ErrnoException;
  const said = saying.find(([words]) => words.test(message))?.[1];
  return remedies[code] ?? said ?? "Check DATABASE_URL, the server, and the network to it.";
}
