import { promises as dns } from "node:dns";
import { syncBuiltinESMExports } from "node:module";

// Loaded into the service by `node --import`: Node takes its name servers from the machine alone, and no setting of
// ours or of Node's names another. What the service asks is answered by the name server whose `address:port` follows
// the `?` of this module's URL, as if the machine's own were that one. Nothing else is changed.
const nameServer = new URL(import.meta.url).search.slice(1);
const MachineResolver = dns.Resolver;

class OurResolver extends MachineResolver {
  constructor(options?: ConstructorParameters<typeof MachineResolver>[0]) {
    super(options);
    this.setServers([nameServer]);
  }
}

const resolver = new OurResolver({ timeout: 1_000, tries: 2 });
dns.Resolver = OurResolver;
// Queries of getaddrinfo go to the same server, and never to the machine's.
dns.lookup = (async (hostname: string) => {
  const addresses = await resolver.resolve4(hostname);
  return addresses.map((address) => ({ address, family: 4 }));
}) as unknown as typeof dns.lookup;
syncBuiltinESMExports();
