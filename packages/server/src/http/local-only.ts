import type { FastifyRequest } from "fastify";
import { ServiceError } from "../errors.ts";

/**
 * The sandbox's protection against DNS rebinding and pages of other sites: a browser sent here by a foreign name has it
 * in Host, and a foreign page in Origin.
 *
 * @throws ServiceError `host_not_allowed`.
 */
export async function localOnly(request: FastifyRequest): Promise<void> {
  const hosts = localHosts(request.socket.localPort ?? 0);
  const { host, origin } = request.headers;
  if (host === undefined || !hosts.includes(host.toLowerCase())) {
    throw new ServiceError("host_not_allowed", `The Host must be one of ${hosts.join(", ")}.`);
  }
  if (origin !== undefined && !hosts.some((known) => origin.toLowerCase() === `http://${known}`)) {
    throw new ServiceError("host_not_allowed", `The Origin must be http:// and one of ${hosts.join(", ")}.`);
  }
}

function localHosts(port: number): string[] {
  const names = ["localhost", "127.0.0.1", "[::1]"];
  return names.flatMap((name) => (port === 80 ? [name, `${name}:80`] : [`${name}:${port}`]));
}
