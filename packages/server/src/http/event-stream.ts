import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyReply, FastifyRequest } from "fastify";
import { ServiceError } from "../errors.ts";

export const eventStreamType = "text/event-stream";

/** A stream ends after this time; a browser reconnects by itself. */
const streamMs = 5 * 60_000;
const streamsOfCallerMax = 8;
const retryAfterS = 5;

export interface EventSource {
  /** Names the caller: its streams are counted together. */
  readonly callerId: string;
  /** Admits the caller again. @throws ServiceError once it may no longer read */
  readonly admit: () => Promise<void>;
  /** The data of the next event. */
  readonly read: () => Promise<unknown>;
  readonly everyMs: number;
}

/**
 * Streams of server-sent events. Before each event the caller is admitted as for a request: who has lost access, or
 * signed out, reads nothing more. Each caller has a bound of streams.
 */
export class EventStreams {
  readonly #closing = new AbortController();
  readonly #open = new Map<string, number>();

  /** Ends all of them. */
  close(): void {
    this.#closing.abort();
  }

  /** @throws ServiceError `too_many_requests` */
  send(request: FastifyRequest, reply: FastifyReply, source: EventSource): FastifyReply {
    this.#requireRoom(source.callerId);
    const gone = this.#count(request, reply, source.callerId);
    const ends = AbortSignal.any([gone, this.#closing.signal, AbortSignal.timeout(streamMs)]);
    return reply
      .headers({ "content-type": eventStreamType, "cache-control": "no-store", "x-accel-buffering": "no" })
      .send(Readable.from(events(source, ends)));
  }

  #requireRoom(callerId: string): void {
    const own = this.#open.get(callerId) ?? 0;
    if (own < streamsOfCallerMax) return;
    throw new ServiceError("too_many_requests", `${own} of your streams are open already: that is the maximum.`, {
      retryAfterS,
    });
  }

  /** @returns aborted when the stream has ended or its caller has disconnected: until then it counts */
  #count(request: FastifyRequest, reply: FastifyReply, callerId: string): AbortSignal {
    const gone = new AbortController();
    const { socket } = request.raw;
    const end = () => {
      socket.off("close", end);
      reply.raw.off("close", end);
      const left = (this.#open.get(callerId) ?? 0) - 1;
      if (left > 0) this.#open.set(callerId, left);
      else this.#open.delete(callerId);
      gone.abort();
    };
    this.#open.set(callerId, (this.#open.get(callerId) ?? 0) + 1);
    // An answer that waits for another one before it, on the same connection, does not emit `close` with it.
    socket.once("close", end);
    reply.raw.once("close", end);
    if (socket.closed) end();
    return gone.signal;
  }
}

async function* events({ admit, read, everyMs }: EventSource, ends: AbortSignal): AsyncGenerator<string> {
  yield `retry: ${everyMs}\n\n`;
  while (!ends.aborted && (await isAdmitted(admit))) {
    yield `data: ${JSON.stringify(await read())}\n\n`;
    await sleep(everyMs, undefined, { signal: ends }).catch(() => undefined);
  }
}

async function isAdmitted(admit: () => Promise<void>): Promise<boolean> {
  try {
    await admit();
    return true;
  } catch (error) {
    if (error instanceof ServiceError) return false;
    throw error;
  }
}
