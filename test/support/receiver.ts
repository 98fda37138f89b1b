import { once } from "node:events";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { IpnRefused, type ReceivedIpn, type ReceiverOptions, receiver } from "@paybell/partner";
import { makeAuthority } from "../../packages/server/src/delivery/transport/transport.fixture.ts";

/** One POST as received. */
export interface ReceivedDelivery {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly atMs: number;
  readonly answer: ReceiverAnswer;
  /** The result of @paybell/partner with the partner's keys; undefined if they were unknown. */
  readonly received: ReceivedIpn | undefined;
  /** Why @paybell/partner refused it. */
  readonly refused: IpnRefused | undefined;
}

/** The answer to one POST. `hang` never answers, `reset` cuts the connection. */
export type ReceiverAnswer =
  | number
  | "hang"
  | "reset"
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  | { readonly when: Promise<unknown>; readonly status: number };

export interface PartnerServer {
  /** https://127.0.0.1:<port>/ipn */
  readonly url: string;
  readonly deliveries: readonly ReceivedDelivery[];
  /** Opens and verifies every delivery from now on, answering 400 to what is refused. */
  opensWith(keys: ReceiverOptions): void;
  /** The answers of the next deliveries, in order; afterwards 204 again. */
  answers(...answers: ReceiverAnswer[]): void;
  /** The answer of every delivery that no other is set for. */
  answersAlways(answer: ReceiverAnswer): void;
  /** Resolves with the first `count` deliveries once they have come. */
  next(count: number): Promise<readonly ReceivedDelivery[]>;
  until(
    holds: (deliveries: readonly ReceivedDelivery[]) => boolean,
    timeoutMs?: number,
  ): Promise<readonly ReceivedDelivery[]>;
  /** Accepts no more connections; established ones are closed. */
  close(): Promise<void>;
}

/** As long as a machine with other work may take. */
const waitDefaultMs = 880_000;

interface Authority {
  readonly ca: string;
  readonly key: string;
  readonly cert: string;
}

let made: Promise<Authority> | undefined;

/** The certificate that a service must trust to call the partners of this test file, in PEM. */
export async function callbackCa(): Promise<string> {
  return (await authority()).ca;
}

/** Addresses of this machine other than loopback: production calls them if a partner's list names them. */
export function machineAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((addresses = []) =>
    addresses.filter(({ internal, family }) => !internal && family === "IPv4").map(({ address }) => address),
  );
}

function authority(): Promise<Authority> {
  made ??= makeOnce();
  return made;
}

async function makeOnce(): Promise<Authority> {
  const root = await makeAuthority("Partners of a test");
  const { key, cert } = await root.issue("localhost", undefined, ["127.0.0.1", ...machineAddresses()]);
  return { ca: root.cert, key, cert };
}

/** A partner's real HTTPS server. Every delivery is stored as received, before it is answered. */
export async function startPartnerServer(host = "127.0.0.1"): Promise<PartnerServer> {
  const { key, cert } = await authority();
  const deliveries: ReceivedDelivery[] = [];
  const waiters = new Set<() => void>();
  const queued: ReceiverAnswer[] = [];
  let usual: ReceiverAnswer = 204;
  let opener: ReturnType<typeof receiver> | undefined;

  function open(body: Buffer, headers: IncomingHttpHeaders): Pick<ReceivedDelivery, "received" | "refused"> {
    try {
      return { received: opener?.open(body, headers), refused: undefined };
    } catch (error) {
      if (!(error instanceof IpnRefused)) throw error;
      return { received: undefined, refused: error };
    }
  }

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const opened = open(body, request.headers);
    const answer = opened.refused === undefined ? (queued.shift() ?? usual) : 400;
    const { method = "", url = "", headers } = request;
    deliveries.push({ method, path: url, headers, body, atMs: performance.now(), answer, ...opened });
    for (const look of waiters) look();
    await give(answer, response);
  }

  const server = createServer({ key, cert, keepAliveTimeout: 30_000 }, (request, response) => {
    // In some tests the sender disconnects in the middle.
    take(request, response).catch(() => response.destroy());
  });
  server.listen(0, host);
  await once(server, "listening");

  function until(holds: (all: readonly ReceivedDelivery[]) => boolean, timeoutMs = waitDefaultMs) {
    return new Promise<readonly ReceivedDelivery[]>((resolve, reject) => {
      const look = () => {
        if (!holds(deliveries)) return;
        clearTimeout(timer);
        waiters.delete(look);
        resolve(deliveries);
      };
      const timer = setTimeout(() => {
        waiters.delete(look);
        reject(new Error(`what was waited for did not come within ${timeoutMs} ms; came: ${namesOf(deliveries)}`));
      }, timeoutMs);
      waiters.add(look);
      look();
    });
  }

  return {
    url: `https://${host}:${(server.address() as AddressInfo).port}/ipn`,
    deliveries,
    opensWith(keys) {
      opener = receiver(keys);
    },
    answers: (...answers) => void queued.push(...answers),
    answersAlways(answer) {
      usual = answer;
    },
    next: async (count) => (await until((all) => all.length >= count)).slice(0, count),
    until,
    async close() {
      const closed = once(server.close(), "close");
      server.closeAllConnections();
      await closed;
    },
  };
}

/**
 * The IPN's fields by the table's names, settlementList apart.
 *
 * @throws when it was refused, saying why
 */
export function ipnOf(delivery: ReceivedDelivery | undefined): Record<string, string> {
  if (delivery?.received === undefined) throw delivery?.refused ?? new Error("there is no opened IPN");
  return delivery.received.ipn as unknown as Record<string, string>;
}

async function give(answer: ReceiverAnswer, response: ServerResponse): Promise<void> {
  if (answer === "hang") return;
  if (answer === "reset") return void response.destroy();
  if (typeof answer === "number") return void response.writeHead(answer).end();
  if ("when" in answer) {
    await answer.when;
    return void response.writeHead(answer.status).end();
  }
  response.writeHead(answer.status, answer.headers).end(answer.body);
}

function namesOf(deliveries: readonly ReceivedDelivery[]): string {
  const last = deliveries.slice(-5).map(({ path, received, refused }) => {
    return `${path} ${refused?.reason ?? received?.headers.command ?? "unopened"}`;
  });
  return `${deliveries.length} deliveries, the last of them ${JSON.stringify(last)}`;
}
