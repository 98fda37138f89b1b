import { X509Certificate } from "node:crypto";
import { Agent, fetch as fetchBy } from "undici";
import { systemClock } from "../clock.ts";
import { type Config, ConfigError, readNamedFile } from "../config/config.ts";
import { createResolver } from "../delivery/transport/addresses.ts";
import { connectorOf } from "../delivery/transport/connect.ts";
import { EgressProxy, type EgressProxyOptions } from "../delivery/transport/egress-proxy.ts";
import { callingContext } from "../delivery/transport/tls.ts";

export type EgressConfig = Pick<Config, "egressProxy" | "egressProxyResolves" | "egressProxyExcept">;

const connectTimeoutMs = 5_000;

/** The forward proxy; undefined without one. @param observed told of its failures */
export function egressProxyOf(
  config: EgressConfig,
  observed: Pick<EgressProxyOptions, "onFailure" | "onNotOpened"> = {},
): EgressProxy | undefined {
  if (config.egressProxy === null) return undefined;
  return new EgressProxy({
    url: config.egressProxy,
    resolvesNames: config.egressProxyResolves === "1",
    except: config.egressProxyExcept,
    resolve: createResolver(),
    clock: systemClock,
    ...observed,
  });
}

/** `fetch` for hosts that the operator's settings name, through the proxy if there is one. */
export function egressFetch(config: EgressConfig): typeof fetch {
  const proxy = egressProxyOf(config);
  if (proxy === undefined) return fetch;
  const rules = { proxy, resolve: createResolver(), secureContext: callingContext(), connectTimeoutMs };
  const dispatcher = new Agent({ connect: connectorOf(rules) });
  const through = ((url: string | URL, options: object) => fetchBy(url, { ...options, dispatcher })) as typeof fetch;
  return (url, options) => {
    const { hostname } = new URL(url instanceof Request ? url.url : url);
    return (proxy.isFor(hostname.replace(/^\[|\]$/g, "")) ? through : fetch)(url, options);
  };
}

const pemCertificates = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * The PEM certificates of PAYBELL_CALLBACK_CA_FILE; none without it.
 *
 * @throws ConfigError if the file cannot be read, or contains no certificate: otherwise every callback to a private CA
 * would fail later
 */
export async function readCallbackCas({ callbackCaFile }: Pick<Config, "callbackCaFile">): Promise<readonly string[]> {
  if (callbackCaFile === null) return [];
  const problem = (detail: string) => new ConfigError([`PAYBELL_CALLBACK_CA_FILE (${callbackCaFile}) ${detail}`]);
  const pem = (await readNamedFile("PAYBELL_CALLBACK_CA_FILE", callbackCaFile)).toString();
  const certificates = pem.match(pemCertificates) ?? [];
  if (certificates.length === 0) throw problem("holds no PEM certificate");
  for (const [index, certificate] of certificates.entries()) {
    try {
      new X509Certificate(certificate);
    } catch {
      throw problem(`holds a certificate that cannot be read: number ${index + 1}`);
    }
  }
  return certificates;
}
