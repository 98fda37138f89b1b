import { ConnectionFailed } from "@paybell/partner/certify";
import { endsOfValidity } from "../partners/callback-tls.ts";
import type { Partner } from "../partners/partner.ts";
import { registeredUrls } from "../registered-url.ts";
import type { ConnectToEndpoint } from "./endpoint-connection.ts";

/** A certificate that deliveries to a partner depend on. */
export interface EndpointCertificate {
  /** `server`: the endpoint's own. `client`: ours, presented to it. `authority`: the only ones trusted for it. */
  readonly whose: "server" | "client" | "authority";
  /** The origin of the endpoint; null for the others. */
  readonly target: string | null;
  /** ISO 8601; null where it could not be seen. */
  readonly endsAt: string | null;
  /** Why not. */
  readonly problem: string | null;
}

/** Looks at the certificates of its registered URLs now, by connections that send nothing. */
export async function certificatesOf(
  partner: Partner,
  connect: ConnectToEndpoint,
): Promise<readonly EndpointCertificate[]> {
  const { callbackCa } = partner.settings;
  const ours = (whose: "client" | "authority", pem: string | null | undefined) =>
    endsOfValidity(pem ?? "").map((endsAt) => ({
      ...{ whose, target: null, problem: null },
      endsAt: endsAt.toISOString(),
    }));
  // Each server once: a certificate is that of an origin.
  const servers = new Map(registeredUrls(partner.settings).map((url) => [new URL(url).origin, new URL(url)]));
  return [
    ...(await Promise.all([...servers.values()].map((url) => ofServer(partner, url, connect)))),
    ...ours("client", partner.keys.client?.certificate),
    ...ours("authority", callbackCa),
  ];
}

async function ofServer(partner: Partner, url: URL, connect: ConnectToEndpoint): Promise<EndpointCertificate> {
  const server = { whose: "server", target: url.origin } as const;
  try {
    const { socket, certificateEndsAt } = await connect(partner, url);
    socket.destroy();
    const problem = certificateEndsAt === undefined ? "it is not https://" : null;
    return { ...server, endsAt: certificateEndsAt?.toISOString() ?? null, problem };
  } catch (error) {
    if (!(error instanceof ConnectionFailed)) throw error;
    return { ...server, endsAt: null, problem: error.message };
  }
}
