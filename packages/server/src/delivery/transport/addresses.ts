import { promises as dns } from "node:dns";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { within } from "../../clock.ts";
import { AddressBlocks } from "../../partners/settings/address-blocks.ts";

/** Resolves a host name to its addresses, the preferred ones first. Rejects if there are none, or without an answer. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

export interface ResolverOptions {
  /** Path of a file like /etc/hosts. */
  readonly hostsFile: string;
  /** `address:port` of each name server; default those of the machine. */
  readonly servers?: readonly string[];
  /** Used last; default the system's getaddrinfo. */
  readonly systemLookUp?: Resolve;
}

const queryTimeoutMs = 2_000;
const queryTries = 2;
/** The wait for IPv6 addresses once IPv4 ones are known: some name servers never answer for AAAA. */
const otherFamilyWaitMs = 100;
/** Names that may wait for getaddrinfo. A partner can make its names end here, and never be answered. */
const systemWaitingMax = 8;
/** Codes that mean that the name is unknown here, so another source may know it. */
const unknownName = new Set(["ENOTFOUND", "ENODATA", "ECONNREFUSED", "ESERVFAIL", "EREFUSED", "EBADNAME"]);

/**
 * Looks names up in the hosts file and then at the name servers, on sockets. getaddrinfo is used last, for search
 * domains and the like, and for one name at a time: it occupies one of Node's two threads for such work until it has
 * answered, and connections to PostgreSQL need the other. Measured with eight names whose server says no once and then
 * nothing: another look-up took 40 s.
 */
export function createResolver(options: ResolverOptions = { hostsFile: "/etc/hosts" }): Resolve {
  const resolver = new dns.Resolver({ timeout: queryTimeoutMs, tries: queryTries });
  if (options.servers !== undefined) resolver.setServers(options.servers);
  const fromSystem = oneAtATime(options.systemLookUp ?? lookUp);
  return async (hostname) => {
    const name = hostname.replace(/\.$/, "").toLowerCase();
    const listed = fromHostsFile(await readFile(options.hostsFile, "utf8").catch(() => ""), name);
    if (listed.length > 0) return listed;
    // RFC 6761: never sent to a name server.
    if (name === "localhost" || name.endsWith(".localhost")) return ["127.0.0.1", "::1"];
    if (!name.includes(".")) return await fromSystem(name);
    try {
      return await fromNameServers(resolver, name);
    } catch (error) {
      if (!unknownName.has((error as NodeJS.ErrnoException).code ?? "")) throw error;
      return await fromSystem(name);
    }
  };
}

function fromHostsFile(text: string, name: string): string[] {
  return text.split("\n").flatMap((line) => {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    return isIP(address) !== 0 && names.some((known) => known.toLowerCase() === name) ? [address] : [];
  });
}

/** IPv4 first: most partners list those, and an egress without IPv6 is common. */
async function fromNameServers(resolver: dns.Resolver, name: string): Promise<string[]> {
  const [v4, v6] = [resolver.resolve4(name), resolver.resolve6(name).catch(() => [])];
  const first = await v4.catch(async (error: unknown) => {
    const other = await v6;
    if (other.length === 0) throw error;
    return other;
  });
  const rest = await within(otherFamilyWaitMs, v6);
  return [...new Set([...first, ...(rest ?? [])])];
}

function oneAtATime(resolve: Resolve): Resolve {
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  return async (name) => {
    if (waiting === systemWaitingMax) throw new Error(`${systemWaitingMax} other names wait to be looked up`);
    waiting += 1;
    const found = last.then(() => resolve(name)).finally(() => (waiting -= 1));
    last = found.catch(() => undefined);
    return await found;
  };
}

async function lookUp(name: string): Promise<string[]> {
  const found = await dns.lookup(name, { all: true, order: "ipv4first" });
  return found.map(({ address }) => address);
}

/** This partner may not be called at this address. The message names the address and the list. */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused";
}

export interface GuardRules {
  /** Only the sandbox calls loopback addresses, and they must be listed there as well. */
  readonly loopbackAllowed: boolean;
}

/**
 * The addresses that a partner's callbacks may go to: section 5, rule 2. It checks three times: a host that is a
 * literal address before anything is connected (a resolver is never asked for those), every address that a name
 * resolves to, and the address that a socket is really connected to, before its first byte.
 */
export class AddressGuard {
  readonly #list: AddressBlocks;
  readonly #rules: GuardRules;

  constructor(callbackAddresses: readonly string[], rules: GuardRules) {
    this.#list = new AddressBlocks(callbackAddresses);
    this.#rules = rules;
  }

  /** Why this address must not be called; undefined if it may. */
  refusal(address: string): string | undefined {
    return this.#list.refusal(address, this.#rules.loopbackAllowed);
  }

  /** @throws AddressRefused */
  requireAllowed(address: string | undefined): void {
    if (address === undefined) throw new AddressRefused("The connection has no address to check.");
    const refusal = this.refusal(address);
    if (refusal !== undefined) throw new AddressRefused(`${refusal}.`);
  }

  /**
   * The allowed ones of the addresses that a name resolved to. Only they are connected to, so a mixed answer does no
   * harm.
   *
   * @throws AddressRefused if there is none, with the reason for each
   */
  allowedOf(hostname: string, addresses: readonly string[]): readonly string[] {
    const allowed = addresses.filter((address) => this.refusal(address) === undefined);
    if (allowed.length > 0) return allowed;
    const shownMax = 4;
    const reasons = addresses.slice(0, shownMax).map((address) => this.refusal(address));
    const more = addresses.length > shownMax ? ` and ${addresses.length - shownMax} more` : "";
    throw new AddressRefused(`${hostname}: ${reasons.join("; ")}${more}.`);
  }
}
