import { promises as dns } from "node:dns";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";

/** The addresses of a host's name, the ones to try first in front. Rejects when there are none, or no answer. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

export interface ResolverOptions {
  /** As /etc/hosts. */
  readonly hostsFile: string;
  /** `address:port` of each name server; those of the machine when left out. */
  readonly servers?: readonly string[];
  /** Asked last; default the system's getaddrinfo. */
  readonly systemLookUp?: Resolve;
}

const queryTimeoutMs = 2_000;
const queryTries = 2;
/** How long IPv6 addresses are waited for once IPv4 ones are known: some name servers never answer for AAAA. */
const otherFamilyWaitMs = 100;
/** Names that may wait for getaddrinfo. A partner's names can be made to end here, and to be answered never. */
const systemWaitingMax = 8;
/** No such name for these, so that another source may know it. */
const unknownName = new Set(["ENOTFOUND", "ENODATA", "ECONNREFUSED", "ESERVFAIL", "EREFUSED", "EBADNAME"]);

/**
 * Names are looked up in the hosts file and then at the name servers, on sockets. getaddrinfo is asked last, for search
 * domains and the like, and for one name at a time: it holds one of Node's two threads for such work until it has
 * answered, and connections to PostgreSQL need the other. Measured with eight names whose server says no once and then
 * nothing: a look-up beside them took 40 s.
 */
export function createResolver(options: ResolverOptions = { hostsFile: "/etc/hosts" }): Resolve {
  const resolver = new dns.Resolver({ timeout: queryTimeoutMs, tries: queryTries });
  if (options.servers !== undefined) resolver.setServers(options.servers);
  const fromSystem = oneAtATime(options.systemLookUp ?? lookUp);
  return async (hostname) => {
    const name = hostname.replace(/\.$/, "").toLowerCase();
    const listed = fromHostsFile(await readFile(options.hostsFile, "utf8").catch(() => ""), name);
    if (listed.length > 0) return listed;
    // RFC 6761: never asked of a name server.
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

/** IPv4 first: partners list mostly those, and an egress without IPv6 is common. */
async function fromNameServers(resolver: dns.Resolver, name: string): Promise<string[]> {
  const [v4, v6] = [resolver.resolve4(name), resolver.resolve6(name).catch(() => [])];
  const first = await v4.catch(async (error: unknown) => {
    const other = await v6;
    if (other.length === 0) throw error;
    return other;
  });
  const rest = await Promise.race([v6, after(otherFamilyWaitMs)]);
  return [...new Set([...first, ...rest])];
}

function after(delayMs: number): Promise<string[]> {
  return new Promise((resolve) => setTimeout(resolve, delayMs, []).unref());
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
