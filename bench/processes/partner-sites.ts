import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { headerNames } from "@paybell/contract";
import { monotonicMs } from "../load.ts";
import { answer } from "./channel.ts";

/** The deliveries that one partner's site saw since the last reset. */
export interface SiteSeen {
  readonly requests: number;
  /** Different notifications that were answered 204. */
  readonly accepted: number;
  /** Requests open at the same moment, at most. */
  readonly mostAtOnce: number;
  /** Requests that began within one second, at most. */
  readonly mostInASecond: number;
  /** Others that began before the first was answered: 0 when one alone tried whether somebody is there. */
  readonly besideTheFirst: number;
  /** Monotonic milliseconds of the machine; 0: none came. */
  readonly firstMs: number;
}

/** The callback servers of many partners, each at /<index>: all of them can be down. */
export function partnerSitesMethods() {
  const sites = new Map<string, Site>();
  const sockets = new Set<Socket>();
  let server: Server | undefined;
  let port = 0;

  const siteAt = (path: string): Site => {
    const site = sites.get(path) ?? new Site();
    sites.set(path, site);
    return site;
  };

  const receive = (request: IncomingMessage, response: ServerResponse) => {
    const site = siteAt(request.url ?? "");
    const place = site.begin(monotonicMs());
    response.on("close", () => site.end(place));
    request.resume();
    request.on("end", () => {
      site.accept(String(request.headers[headerNames.id]));
      response.writeHead(204);
      response.end();
    });
  };

  async function listen(): Promise<void> {
    server?.listen(port, "127.0.0.1");
    if (server) await once(server, "listening");
  }

  return {
    /** @returns where the sites are: partner n's is <url>/n */
    async serve(certificate: { readonly key: string; readonly cert: string }): Promise<string> {
      server = createServer({ ...certificate, keepAliveTimeout: 60_000 }, receive);
      server.on("connection", (socket: Socket) => {
        sockets.add(socket);
        socket.on("close", () => sockets.delete(socket));
      });
      await listen();
      port = (server.address() as AddressInfo).port;
      return `https://127.0.0.1:${port}`;
    },
    /** Stops listening, and cuts open connections. */
    async goDown(): Promise<void> {
      const closed = server && once(server, "close");
      server?.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
    /** Monotonic milliseconds of the machine, from which on they listen again. */
    async comeBack(): Promise<number> {
      await listen();
      return monotonicMs();
    },
    forget: (): void => sites.clear(),
    seen: (partners: number): readonly SiteSeen[] =>
      Array.from({ length: partners }, (_, index) => siteAt(`/${index}`).seen()),
  };
}

class Site {
  readonly #begunMs: number[] = [];
  readonly #accepted = new Set<string>();
  #open = 0;
  #mostAtOnce = 0;
  #besideTheFirst = 0;
  #firstIsOpen = true;

  /** @returns which one it is */
  begin(nowMs: number): number {
    this.#begunMs.push(nowMs);
    this.#open += 1;
    this.#mostAtOnce = Math.max(this.#mostAtOnce, this.#open);
    if (this.#begunMs.length > 1 && this.#firstIsOpen) this.#besideTheFirst += 1;
    return this.#begunMs.length;
  }

  accept(notificationId: string): void {
    this.#accepted.add(notificationId);
  }

  end(place: number): void {
    this.#open -= 1;
    if (place === 1) this.#firstIsOpen = false;
  }

  seen(): SiteSeen {
    return {
      requests: this.#begunMs.length,
      accepted: this.#accepted.size,
      mostAtOnce: this.#mostAtOnce,
      mostInASecond: mostWithin(this.#begunMs, 1_000),
      besideTheFirst: this.#besideTheFirst,
      firstMs: this.#begunMs[0] ?? 0,
    };
  }
}

/** The largest number of these ordered times within any `spanMs`. */
function mostWithin(timesMs: readonly number[], spanMs: number): number {
  let most = 0;
  let first = 0;
  for (const [last, timeMs] of timesMs.entries()) {
    while (timeMs - (timesMs[first] ?? timeMs) >= spanMs) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

if (import.meta.main) answer(process, partnerSitesMethods());
