import type { FastifyRequest } from "fastify";
import { ServiceError } from "../errors.ts";

/** RFC 3986, section 2.3: letters, digits, - . _ and ~ mean the same when encoded, so encoding them is unnecessary. */
const encodedUnreserved = /%(?:3[0-9]|[46][1-9a-f]|[57][0-9a]|2[de]|5f|7e)/i;
/** Node keeps the first of two, a proxy perhaps the last. */
const once: ReadonlySet<string> = new Set(["host", "authorization"]);

/**
 * Refuses requests that a proxy in front may have read differently: it was configured to keep `/metrics` inside, and
 * `/%6detrics` is the same path for us and another one for it.
 *
 * @throws ServiceError `ambiguous_request`, rejected
 */
export async function refuseAmbiguous({ raw }: FastifyRequest): Promise<void> {
  const [path = ""] = (raw.url ?? "").split("?", 1);
  if (path.includes("%") && encodedUnreserved.test(path)) {
    throw new ServiceError("ambiguous_request", "The path has a percent-encoded character that needs no encoding.");
  }
  if (!path.startsWith("/") && path !== "*") {
    throw new ServiceError("ambiguous_request", "The request's target is not a path.");
  }
  const seen = new Set<string>();
  for (let at = 0; at < raw.rawHeaders.length; at += 2) {
    const name = raw.rawHeaders[at] ?? "";
    if (name.length !== 4 && name.length !== 13) continue;
    const known = name.toLowerCase();
    if (!once.has(known)) continue;
    if (seen.has(known)) throw new ServiceError("ambiguous_request", `The header ${known} appears twice.`);
    seen.add(known);
  }
}
