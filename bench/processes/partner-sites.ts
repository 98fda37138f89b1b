import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
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

interface Site {
  readonly begunMs: number[];
  readonly accepted: Set<string>;
  open: number;
  mostAtOnce: number;
  besideTheFirst: number;
  firstIsOpen: boolean;
}

/** The callback servers of many partners, each at /<index>: all of them can be down. */
export function partnerSitesMethods() {
  const sites = new Map<string, Site>();
  let server: Server;
  let port = 0;

  const siteAt = (path: string): Site => {
    const begun = { begunMs: [], accepted: new Set<string>(), open: 0, mostAtOnce: 0, besideTheFirst: 0 };
    const site = sites.get(path) ?? { ...begun, firstIsOpen: true };
    sites.set(path, site);
    return site;
  };

  const receive = (request: IncomingMessage, response: ServerResponse) => {
    const site = siteAt(request.url ?? "");
    const place = site.begunMs.push(monotonicMs());
    site.open += 1;
    site.mostAtOnce = Math.max(site.mostAtOnce, site.open);
    if (place > 1 && site.firstIsOpen) site.besideTheFirst += 1;
    response.on("close", () => {
      site.open -= 1;
      if (place === 1) site.firstIsOpen = false;
    });
    request.resume();
    request.on("end", () => {
      site.accepted.add(String(request.headers[headerNames.id]));
      response.writeHead(204).end();
    });
  };

  const seen = (index: number): SiteSeen => {
    const { begunMs, accepted, mostAtOnce, besideTheFirst } = siteAt(`/${index}`);
    const counts = { requests: begunMs.length, accepted: accepted.size, mostAtOnce, besideTheFirst };
    return { ...counts, mostInASecond: mostWithin(begunMs, 1_000), firstMs: begunMs[0] ?? 0 };
  };

  async function listen(): Promise<void> {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
  }

  return {
    /** @returns where the sites are: partner n's is <url>/n */
    async serve(certificate: { readonly key: string; readonly cert: string }): Promise<string> {
      server = createServer({ ...certificate, keepAliveTimeout: 60_000 }, receive);
      await listen();
      port = (server.address() as AddressInfo).port;
      return `https://127.0.0.1:${port}`;
    },
    /** Stops listening, and cuts open connections. */
    async goDown(): Promise<void> {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
    /** Monotonic milliseconds of the machine, from which on they listen again. */
    async comeBack(): Promise<number> {
      await listen();
      return monotonicMs();
    },
    forget: (): void => sites.clear(),
    seen: (partners: number): readonly SiteSeen[] => Array.from({ length: partners }, (_, index) => seen(index)),
  };
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
