import type { FieldProblem } from "../errors.ts";
import { AddressBlocks } from "./address-blocks.ts";

const charactersMax = 2_048;

export interface CallbackUrlRules {
  /** Only the sandbox allows http:// and loopback callbacks. */
  readonly sandbox: boolean;
}

/** The partner's agreed addresses and ports; missing ones are not checked. */
export interface AgreedCallbacks {
  readonly callbackAddresses?: readonly string[];
  readonly callbackPorts?: readonly number[] | null;
}

/**
 * Returns the problem of a callback URL (section 4.1); undefined if it can be called. With `callbackAddresses`, a URL
 * whose host is a literal address is checked at once; names are checked when they are looked up.
 */
export function callbackUrlProblem(
  field: string,
  url: string,
  rules: CallbackUrlRules,
  { callbackAddresses: addresses, callbackPorts: ports = null }: AgreedCallbacks = {},
): FieldProblem | undefined {
  const invalid = (why: string): FieldProblem => ({ field, code: "invalid_callback_url", message: `${field} ${why}.` });
  if (url.length > charactersMax)
    return { field, code: "too_long", message: `${field} has over ${charactersMax} characters.` };
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^https?:\/\//i.test(url)) return invalid("is not an absolute https:// URL");
  if (parsed.username !== "" || parsed.password !== "") return invalid("must not hold a user name or password");
  // Not parsed.hash: it is empty for a bare # as well.
  if (url.includes("#")) return invalid("must not hold a fragment");
  if (/[\s\p{Cc}\\]/u.test(url)) return invalid("holds white space, a control character or a backslash");
  if (!url.isWellFormed()) return invalid("holds half of a surrogate pair");
  if (parsed.protocol === "http:" && !rules.sandbox) {
    return { field, code: "insecure_callback_url", message: `${field} must begin with https://.` };
  }
  const port = parsed.port === "" ? (parsed.protocol === "https:" ? 443 : 80) : Number(parsed.port);
  if (ports !== null && !ports.includes(port))
    return invalid(`has a port that is not among callbackPorts (${ports.join(", ")})`);
  const literal = literalAddress(parsed.hostname);
  const refusal = literal && addresses && new AddressBlocks(addresses).refusal(literal, rules.sandbox);
  return refusal ? { field, code: "address_not_whitelisted", message: `${field}: ${refusal}.` } : undefined;
}

/**
 * The literal address of a URL's host, or undefined for a name. URL has normalised every spelling of an IPv4 address:
 * 2130706433, 0x7f.1 and 0177.1 are all 127.0.0.1.
 */
export function literalAddress(hostname: string): string | undefined {
  if (hostname.startsWith("[")) return hostname.slice(1, -1);
  return /^[0-9]+(\.[0-9]+){3}$/.test(hostname) ? hostname : undefined;
}
