/** A database on this machine: a unix socket, or a loopback address. */
const local = /^(|localhost|127(\.\d+){3}|\[::1\])$/;

/**
 * Whether a connection to another machine's database can be read or redirected in transit: without TLS, or with TLS
 * without verification. Only `sslmode=verify-full` certainly verifies, whatever the driver's version.
 */
export function isUnverifiedRemote(databaseUrl: string): boolean {
  const withHost = databaseUrl.replace(/^(\w+:\/\/(?:[^@/?#]*@)?)(?=[/?]|$)/, "$1localhost");
  if (!URL.canParse(withHost)) return false;
  const { hostname, searchParams } = new URL(withHost);
  const host = searchParams.get("host") ?? hostname;
  return !host.startsWith("/") && !local.test(host) && searchParams.get("sslmode") !== "verify-full";
}
