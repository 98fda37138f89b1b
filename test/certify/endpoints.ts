import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { NotAuthentic, openAndVerify, webhookSignatureMatches } from "@paybell/contract";
import { IpnRefused, type ReceivedIpn, type Receiver, type ReceiverOptions, receiver } from "@paybell/partner";
import { nodeHandler } from "@paybell/partner/node";
import { sealerKeys } from "../../packages/partner/src/certify/notification.ts";

/** A partner's endpoint, in a real server. */
export interface TestEndpoint {
  readonly url: URL;
  /** The accepted IPNs. */
  readonly taken: ReceivedIpn[];
  /** The reasons of its refusals, in order. */
  readonly refusals: string[];
  close(): Promise<void>;
}

type Listener = (endpoint: Pick<TestEndpoint, "taken" | "refusals">) => RequestListener;

export async function startEndpoint(listener: Listener): Promise<TestEndpoint> {
  const [taken, refusals]: [ReceivedIpn[], string[]] = [[], []];
  const server = createServer(listener({ taken, refusals }));
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/ipn`),
    taken,
    refusals,
    async close() {
      const closed = server.listening ? once(server, "close") : undefined;
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Made with the handler of the library, as its documents show it. */
export function byTheLibrary(options: ReceiverOptions): Listener {
  return ({ taken }) => nodeHandler(receiver(options), (received) => taken.push(received), { log: () => undefined });
}

/** Names the first check that fails, each made with the contract alone, without the library. */
export function byTheContract(options: ReceiverOptions): Listener {
  const { sealing, signing, encryptionKey, signingKey, webhookSecret } = sealerKeys(options);
  const how = { sealing, signing, encryptionKeys: [encryptionKey], signingKeys: [signingKey] };

  function reasonToRefuse(body: string, headers: IncomingHttpHeaders): string | undefined {
    const [id, timestamp, signature] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((n) => headers[n]);
    if (typeof id !== "string" || typeof timestamp !== "string" || typeof signature !== "string") return "headers";
    if (!webhookSignatureMatches(signature, id, timestamp, body, [webhookSecret])) return "webhook-signature";
    if (Math.abs(Date.now() / 1_000 - Number(timestamp)) > 300) return "freshness";
    try {
      openAndVerify(body, how);
      return undefined;
    } catch (error) {
      return error instanceof NotAuthentic ? error.reason : "thrown";
    }
  }

  return ({ refusals }) =>
    (request, response) => {
      whenRead(request, 2 ** 24, (body = Buffer.alloc(0)) => {
        const reason = reasonToRefuse(body.toString(), request.headers);
        if (reason !== undefined) refusals.push(reason);
        response.writeHead(reason === undefined ? 200 : 400).end();
      });
    };
}

/** Code that an engineer writes around `open`. Each of the broken ones below changes one line of it. */
interface ByHand {
  readonly open?: Receiver["open"];
  readonly refuse?: (response: ServerResponse, error: unknown) => void;
  readonly store?: (received: ReceivedIpn) => void;
  readonly bodyBytesMax?: number;
}

function byHand(options: ReceiverOptions, changes: ByHand = {}): Listener {
  const {
    open = receiver(options).open,
    refuse = refuseAlike,
    store = () => undefined,
    bodyBytesMax = 2 ** 24,
  } = changes;
  return ({ taken }) =>
    (request, response) => {
      if (request.method !== "POST") return void response.writeHead(405).end();
      whenRead(request, bodyBytesMax, (body) => {
        if (body === undefined) return answerTooLarge(request, response);
        let received: ReceivedIpn;
        try {
          received = open(body, request.headers);
        } catch (error) {
          return refuse(response, error);
        }
        try {
          store(received);
          taken.push(received);
          response.writeHead(200).end("ok");
        } catch (error) {
          response.writeHead(500).end(String(error));
        }
      });
    };
}

/** At once, but the connection ends after the body did, as a proxy does it: a reset could overtake the answer. */
function answerTooLarge(request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(413).write("too large");
  request.once("end", () => response.end());
}

function refuseAlike(response: ServerResponse): void {
  response.writeHead(400).end("not authentic");
}

/** Calls back with the whole body, or with undefined as soon as it is too long. */
function whenRead(request: IncomingMessage, bytesMax: number, done: (body: Buffer | undefined) => void): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const take = (chunk: Buffer) => {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes <= bytesMax) return;
    request.off("data", take).off("end", end).resume();
    done(undefined);
  };
  const end = () => done(Buffer.concat(chunks));
  request
    .on("data", take)
    .on("end", end)
    .on("error", () => undefined);
}

/** Endpoints that are wrong, each in one way. */
export const broken = {
  /** Answers 200 to whatever comes, once it has read it. */
  saysYes: (): Listener => () => (request, response) => {
    request.resume().on("end", () => response.writeHead(200).end("ok"));
  },

  /** Lets its framework parse the body, and verifies the re-serialised form. */
  reserialises: (options: ReceiverOptions): Listener => {
    const { open } = receiver(options);
    return byHand(options, {
      open: (body, headers) => open(JSON.stringify(JSON.parse(body.toString())), headers),
    });
  },

  /** Inserts into a table with a unique id, and answers 500 if the row exists. */
  failsOnDuplicates: (options: ReceiverOptions): Listener => {
    const ids = new Set<string>();
    return byHand(options, {
      store: ({ ipn }) => {
        if (ids.has(ipn.id)) throw new Error('duplicate key value violates unique constraint "ipns_pkey"');
        ids.add(ipn.id);
      },
    });
  },

  /** Accepts bodies up to 1 MB. */
  limitsBodies: (options: ReceiverOptions): Listener => byHand(options, { bodyBytesMax: 1_000_000 }),

  /** Verifies the signature over the time, but not the time. */
  ignoresFreshness: (options: ReceiverOptions): Listener => byHand({ ...options, freshnessSeconds: 86_400 }),

  /** Knows only the tables' names. */
  knowsNoAlias: (options: ReceiverOptions): Listener => {
    const { open } = receiver(options);
    const { sealing, signing, encryptionKey, signingKey } = sealerKeys(options);
    const how = { sealing, signing, encryptionKeys: [encryptionKey], signingKeys: [signingKey] };
    return byHand(options, {
      open: (body, headers) => {
        const received = open(body, headers);
        const { wire } = openAndVerify(body.toString(), how);
        if (!("deviceId" in wire)) throw new NotAuthentic("signature");
        return received;
      },
    });
  },

  /** Has a web page at the same path. */
  answersGet:
    (options: ReceiverOptions): Listener =>
    (endpoint) => {
      const post = byHand(options)(endpoint);
      return (request, response) => {
        if (request.method === "GET") response.writeHead(200).end("<h1>IPN endpoint</h1>");
        else post(request, response);
      };
    },

  /** Answers as soon as the headers arrive, and verifies afterwards. */
  answersAtOnce: (): Listener => () => (request, response) => {
    response.writeHead(202).end();
    request.resume();
  },

  /** Says which check failed. */
  tellsWhy: (options: ReceiverOptions): Listener =>
    byHand(options, {
      refuse: (response, error) => {
        const reason = error instanceof IpnRefused ? error.reason : "malformed";
        response.writeHead(reason === "missing_headers" ? 401 : 400).end(JSON.stringify({ error: reason }));
      },
    }),

  /** Does not catch what opening throws. */
  throwsOnForgery: (options: ReceiverOptions): Listener =>
    byHand(options, { refuse: (response, error) => void response.writeHead(500).end(String(error)) }),

  /** Refuses a Void of a Sale that it has not stored yet. */
  wantsOrder: (options: ReceiverOptions): Listener => {
    const ids = new Set<string>();
    return byHand(options, {
      store: ({ ipn, headers: { originalTransactionId } }) => {
        if (originalTransactionId !== undefined && !ids.has(originalTransactionId)) throw new Error("no such Sale");
        ids.add(ipn.id);
      },
    });
  },

  /** Answers with a redirect. */
  redirects: (): Listener => () => (request, response) => {
    request.resume().on("end", () => response.writeHead(308, { location: `${request.url}/` }).end());
  },

  /** A machine whose clock is an hour ahead. */
  hasAnotherTime: (options: ReceiverOptions): Listener => {
    const nowMs = () => Date.now() + 3_600_000;
    const listener = byHand({ ...options, clock: { nowMs } });
    return (endpoint) => {
      const answer = listener(endpoint);
      return (request, response) => {
        response.setHeader("date", new Date(nowMs()).toUTCString());
        answer(request, response);
      };
    };
  },

  /** Its process ends when a request is cut: here its server is closed. */
  endsWhenCut:
    (options: ReceiverOptions): Listener =>
    (endpoint) => {
      const answer = byHand(options)(endpoint);
      return (request, response) => {
        request.socket.once("end", () => {
          if (!request.complete) end(request);
        });
        answer(request, response);
      };
    },

  /** Its process ends when a body is not JSON. */
  endsAtJunk:
    (options: ReceiverOptions): Listener =>
    (endpoint) => {
      const answer = byHand(options)(endpoint);
      return (request, response) => {
        request.once("data", (chunk: Buffer) => {
          if (chunk.includes("[[[")) end(request);
        });
        answer(request, response);
      };
    },
} as const;

function end(request: IncomingMessage): void {
  const { server } = request.socket as unknown as { server: Server };
  server.close();
  server.closeAllConnections();
}
