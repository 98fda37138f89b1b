import type { Socket } from "node:net";
import { ConnectionFailed } from "@paybell/partner/certify";
import { connect, partnerRules, type ServiceConnectionSettings, targetOf } from "../delivery/transport/connect.ts";
import { noTls, TransportFailure } from "../delivery/transport/failure.ts";
import { registeredUrls } from "../notification.ts";
import type { Partner } from "../partners/partner.ts";
import { endsOfValidity } from "../partners/settings/callback-rules.ts";

/** A new connection to a partner's endpoint, by the rules of every delivery. */
export interface EndpointConnection {
  readonly socket: Socket;
  /** When the server's certificate ends; undefined over http://. */
  readonly certificateEndsAt: Date | undefined;
}

export type ConnectToEndpoint = (partner: Partner, url: URL) => Promise<EndpointConnection>;

/** Its rejections are ConnectionFailed, and name no address: the partner may see them. */
export function endpointConnections(settings: ServiceConnectionSettings): ConnectToEndpoint {
  return async (partner, url) => {
    let certificateEndsAt: Date | undefined;
    const rules = {
      ...partnerRules(partner, settings),
      onCertificate: (endsAt: Date) => {
        certificateEndsAt = endsAt;
      },
    };
    try {
      const { socket } = await connect(targetOf(url), rules, { session: undefined }).connected;
      return { socket, certificateEndsAt };
    } catch (error) {
      if (error instanceof TransportFailure) throw failedFor(error);
      throw error;
    }
  };
}

function failedFor({ reason, message }: TransportFailure): ConnectionFailed {
  if (reason === "tls") return new ConnectionFailed(message.startsWith(noTls) ? "no_tls" : "tls", message);
  const notCallable = "its name leads to no address among the partner's callbackAddresses";
  const why = {
    address_refused: notCallable,
    dns: notCallable,
    connect_timeout: "there was no connection in time",
    egress: "the service's own way out of its network fails",
  } as const;
  const known = Object.entries(why).find(([one]) => one === reason);
  return new ConnectionFailed("no_connection", known?.[1] ?? "the connection was refused");
}

/** Looks at the certificates of its registered URLs now, by connections that send nothing. */
export async function certificatesOf(partner: Partner, connect: ConnectToEndpoint) {
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

async function ofServer(partner: Partner, url: URL, connect: ConnectToEndpoint) {
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
