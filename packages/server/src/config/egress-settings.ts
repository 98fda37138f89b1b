import { addressRange, type Kind, listOf, oneOf, text, url } from "./kind.ts";
import { optional, setting } from "./setting.ts";

const httpUrl = url("http:", "https:");

const proxyUrl: Kind<string> = {
  description: `${httpUrl.description}, its user and password percent-encoded`,
  read(value) {
    try {
      const { username, password } = new URL(httpUrl.read(value) ?? "");
      decodeURIComponent(username + password);
      return value;
    } catch {
      return undefined;
    }
  },
};

/** The service's own connections to others. */
export const egressSettings = {
  egressAddresses: setting({
    name: "PAYBELL_EGRESS_ADDRESSES",
    kind: listOf(addressRange, "IP addresses or CIDR ranges"),
    default: [],
    meaning: "Addresses from which callbacks are sent, published to partners for their allowlists.",
  }),
  callbackCaFile: optional({
    name: "PAYBELL_CALLBACK_CA_FILE",
    kind: text,
    meaning: "PEM file of certificate authorities that callbacks may use in addition to the well-known ones.",
  }),
  egressProxy: optional({
    name: "PAYBELL_EGRESS_PROXY",
    kind: proxyUrl,
    meaning:
      "Forward proxy, as http://user:password@proxy.internal:3128, for callbacks, alerts, the OpenID provider and " +
      "the key service: each connection is a tunnel (CONNECT) to the address that was checked. Not set: they are " +
      "direct.",
    secret: true,
  }),
  egressProxyResolves: setting({
    name: "PAYBELL_EGRESS_PROXY_RESOLVES",
    kind: oneOf(["0", "1"]),
    default: "0" as const,
    meaning:
      "`1`: the proxy is asked for names, and looks them up. The service cannot check their addresses then: the " +
      "proxy must refuse private, loopback and link-local ones.",
  }),
  egressProxyExcept: setting({
    name: "PAYBELL_EGRESS_PROXY_EXCEPT",
    kind: listOf(text, "host names, domains such as .internal.example, IP addresses or CIDR ranges"),
    default: ["localhost", "127.0.0.0/8", "::1"],
    meaning: "Hosts that are connected to directly. A range is about hosts that a URL names by their address.",
  }),
};
