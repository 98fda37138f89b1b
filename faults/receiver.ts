import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { IpnRefused, type ReceivedIpn, type Receiver } from "@paybell/partner";
import { generate } from "selfsigned";

/** The condition of a partner's server. Only `well`, `late` and `forgetful` accept what they are sent. */
export type ReceiverMode =
  | "well"
  /** 503 */
  | "busy"
  /** Answers nothing. */
  | "silent"
  /** Cuts the connection after the request. */
  | "broken"
  /** Accepts, and answers after a second. */
  | "late"
  /** Accepts, and the answer never leaves. */
  | "forgetful";

const lateMs = 1_000;
const troublesMax = 20;

/** All partners' HTTPS servers in one: partner n hosts /ipn/n. Each IPN is opened and verified before it counts. */
export class PartnersServer {
  readonly #server: Server;
  readonly #openers: Receiver[] = [];
  readonly #modes: ReceiverMode[] = [];
  readonly #accepted: (partner: number, received: ReceivedIpn) => void;
  /** Accepted IPNs whose answer was kept back: each comes once more. */
  forgotten = 0;
  /** Deliveries that could not be verified. */
  readonly unauthentic: string[] = [];

  constructor({ key, cert }: PartnerCertificate, accepted: (partner: number, received: ReceivedIpn) => void) {
    this.#accepted = accepted;
    this.#server = createServer({ key, cert, keepAliveTimeout: 60_000 }, (request, response) => {
      // In some faults the sender disconnects in the middle.
      this.#take(request, response).catch(() => response.destroy());
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async listen(host: string): Promise<void> {
    this.#server.listen(0, host);
    await once(this.#server, "listening");
  }

  opensWith(partner: number, opener: Receiver): void {
    this.#openers[partner] = opener;
  }

  behave(partner: number, mode: ReceiverMode): void {
    this.#modes[partner] = mode;
  }

  async close(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const partner = Number((request.url ?? "").split("/").at(-1));
    const mode = this.#modes[partner] ?? "well";
    if (mode === "silent") return;
    if (mode === "broken") return void response.destroy();
    if (mode === "busy") return void response.writeHead(503).end();
    const received = this.#open(partner, Buffer.concat(chunks), request);
    if (received === undefined) return void response.writeHead(400).end();
    if (mode === "late") await new Promise((resolve) => setTimeout(resolve, lateMs));
    this.#accepted(partner, received);
    if (mode === "forgetful") {
      this.forgotten += 1;
      return void response.destroy();
    }
    response.writeHead(204).end();
  }

  #open(partner: number, body: Buffer, request: IncomingMessage): ReceivedIpn | undefined {
    try {
      return this.#openers[partner]?.open(body, request.headers);
    } catch (error) {
      if (!(error instanceof IpnRefused)) throw error;
      if (this.unauthentic.length < troublesMax) this.unauthentic.push(`partner ${partner}: ${error.reason}`);
      return undefined;
    }
  }
}

/** In PEM. */
export interface PartnerCertificate {
  readonly key: string;
  readonly cert: string;
  /** The certificate that a client must trust. */
  readonly ca: string;
}

/** Names of partners: `<anything>.partners.test`. */
export const partnerDomain = "partners.test";

/** Makes the certificate of an HTTPS server that partners' names and this address lead to. It vouches for no other. */
export async function partnerCertificate(address: string): Promise<PartnerCertificate> {
  const made = await generate([{ name: "commonName", value: "Partners of the fault suite" }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: false, critical: true },
      {
        name: "subjectAltName",
        altNames: [
          { type: 2, value: `*.${partnerDomain}` },
          { type: 7, ip: address },
        ],
      },
    ],
  });
  return { key: made.private, cert: made.cert, ca: made.cert };
}
