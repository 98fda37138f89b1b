import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { monotonicMs } from "../load.ts";
import { answer } from "./channel.ts";

export interface Received {
  readonly count: number;
  /** CPU time of this process since its start. */
  readonly cpuMs: number;
}

/** The partner's side of every row: an HTTPS server that reads, counts and answers 204. */
export function receiverMethods(process: NodeJS.Process) {
  let count = 0;
  let arrivals = new Float64Array(0);

  const serve = async (certificate: { readonly key: string; readonly cert: string }): Promise<string> => {
    const server = createServer({ ...certificate, keepAliveTimeout: 60_000 }, (request, response) => {
      request.resume();
      request.on("end", () => {
        count += 1;
        const index = arrivalIndex(request.url ?? "");
        if (index < arrivals.length) arrivals[index] ||= monotonicMs();
        response.writeHead(204);
        response.end();
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return `https://127.0.0.1:${(server.address() as AddressInfo).port}/ipn`;
  };

  return {
    serve,
    received: (): Received => {
      const { user, system } = process.cpuUsage();
      return { count, cpuMs: (user + system) / 1_000 };
    },
    /** From now on callbacks to /ipn/<index> note when they came. */
    noteArrivals: (size: number): void => {
      arrivals = new Float64Array(size);
    },
    /** Monotonic milliseconds of the machine, by index; 0: not come. */
    arrivals: (): Float64Array => arrivals,
  };
}

/** Beyond every array for a callback that nobody times. */
function arrivalIndex(url: string): number {
  const text = url.slice("/ipn/".length);
  return text === "" ? Number.MAX_SAFE_INTEGER : Number(text);
}

if (import.meta.main) answer(process, receiverMethods(process));
