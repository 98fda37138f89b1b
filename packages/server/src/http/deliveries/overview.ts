import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { componentOf, described } from "../../input/descriptions.ts";
import type { OperatorCallers } from "../callers/operator-callers.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { operations, type PartnerRoutes, responses } from "../operation.ts";
import { partnerParams, requirePartner } from "../parameters.ts";
import { partnerReads, viewer } from "../policy.ts";
import { because, reasonForPartner } from "./notifications.ts";

const time = z.iso.datetime();
const ms = z.number().nullable();
const outcomes = {
  accepted: z.int(),
  failed: described(z.int(), "Attempts that failed, whether they are repeated or not"),
  parked: z.int(),
};

const spanQuery = z.strictObject({
  span: described(z.enum(["hour", "day", "week"]).default("hour"), "Back from now"),
});

const figuresSchema = componentOf("Figures", "Deliveries in a period, of all instances; a few seconds late", {
  span: z.enum(["hour", "day", "week"]),
  asOf: time,
  points: described(
    z.array(z.object({ at: time, ...outcomes })),
    "One for each minute, or hour of a week, in which something was delivered",
  ),
  ...outcomes,
  attemptP50Ms: described(ms, "Of all attempts: how long the partner's endpoint took"),
  attemptP99Ms: ms,
  deliveryP50Ms: described(ms, "From creation, or redelivery, to acceptance"),
  deliveryP99Ms: ms,
  failures: described(
    z.array(
      z.object({
        reason: described(z.string(), "In a stable word"),
        httpStatus: described(z.int().nullable(), "null: without an answer"),
        attempts: z.int(),
        lastAt: time,
      }),
    ),
    "Why attempts failed: of one partner, among its newest 1,000, the most frequent first; at most 10",
  ),
});

const troubleSchema = componentOf("Trouble", "Why a partner does not receive its notifications now", {
  partnerId: z.uuid(),
  partnerName: z.string(),
  notificationId: described(z.uuid(), "The oldest pending one that failed: the reason is that of its last attempt"),
  because,
  reason: described(z.string().nullable(), "Why the last attempt failed, in a stable word; null: none was made"),
  httpStatus: described(z.int().nullable(), "Of the last attempt; null: without an answer"),
  since: described(time.nullable(), "The first attempt of its schedule; or when the partner was paused or disabled"),
  waiting: described(z.int(), "Pending notifications; 1,000: or more"),
  nextAttemptAt: described(time.nullable(), "At the earliest; null: when a person acts"),
  parkingAt: described(time.nullable(), "When the first is parked; null: not while the partner is not active"),
});

const parkedSchema = componentOf("ParkedOfPartner", "Why notifications of a partner are parked", {
  partnerId: z.uuid(),
  partnerName: z.string(),
  notificationId: described(z.uuid(), "The newest: the reason is that of its last attempt"),
  reason: described(z.string().nullable(), "In a stable word"),
  httpStatus: described(z.int().nullable(), "Of the last attempt; null: without an answer"),
  since: described(time.nullable(), "When the newest was parked"),
  parked: described(z.int(), "They are kept, and sent when a person redelivers them; 1,000: or more"),
  acceptedAt: described(
    time.nullable(),
    "When the partner last accepted another since the last was parked: then nothing but a redelivery is left to do. " +
      "null: it has accepted none since, and is in trouble",
  ),
});

const backlogSchema = componentOf("Backlog", "What you have not received, and how far you have pulled", {
  trouble: described(troubleSchema.nullable(), "null: nothing waits, or what waits is under way"),
  pending: described(z.int(), "Exact up to 10,000"),
  oldestPendingAt: time.nullable(),
  parked: described(z.int(), "Exact up to 10,000"),
  parkedBecause: described(parkedSchema.nullable(), "null: nothing is parked"),
  pull: described(
    z
      .object({
        at: described(time, "When you last passed a cursor"),
        upTo: described(time.nullable(), "What was created before, you have seen"),
        left: described(z.int().nullable(), "Notifications after the cursor; 1,000: or more"),
        problem: described(z.string().nullable(), "The code of the error with which the cursor is refused now"),
      })
      .nullable(),
    "How far you have pulled, some seconds late; null: never from a cursor",
  ),
});

const overviewSchema = componentOf("Overview", "The state of deliveries, and the backlog", {
  trouble: described(
    z.array(troubleSchema),
    "Partners that do not receive their notifications now, the first to be parked first; at most 50",
  ),
  parked: described(z.array(parkedSchema), "Partners with parked notifications, those in trouble first; at most 50"),
  figures: figuresSchema,
  pending: described(z.int(), "Exact up to 10,000"),
  oldestPendingAt: time.nullable(),
  standing: described(
    z.object({
      parked: z.int(),
      tripped: described(z.int(), "Endpoints whose circuit is tripped, or whose URL is gone"),
      reversalsParked: z.int(),
      reversalsPending: z.int(),
      settlementsWaiting: described(z.int(), "Settlements that the acquirer has not answered at the first try"),
    }),
    "Exact up to 10,000",
  ),
  failing: described(
    z.array(z.object({ partnerId: z.uuid(), ...outcomes })),
    "Partners of which attempts failed within the last hour or two, most first; at most 10",
  ),
});

const operation = operations("Deliveries");
const ownOperation = operations("Notifications");

const liveEveryMs = 2_000;

/** Routes of the overview of deliveries: read once, and live. */
export function overviewRoutes(app: HttpApp, { overview, registry }: HttpDependencies, callers: OperatorCallers): void {
  const streams = new EventStreams();
  app.addHook("preClose", (done) => {
    streams.close();
    done();
  });
  app.get(
    "/operator/v1/overview",
    operation(viewer.reads, "getOverview", "Get the state of deliveries, and the backlog", {
      querystring: spanQuery,
      response: responses([200, overviewSchema, "As of now"]),
    }),
    async ({ query }) => await overview.all(query.span),
  );
  app.get(
    "/operator/v1/overview/live",
    operation(viewer.reads, "watchOverview", "Stream the overview, every two seconds", {
      description:
        "Server-sent events; the data of each is an Overview. The stream ends after five minutes, and when the " +
        "caller loses access. A caller may have eight open.",
      querystring: spanQuery,
      response: responses([200, z.string(), "A stream of events", eventStreamType]),
    }),
    async (request, reply) =>
      streams.send(request, reply, {
        callerId: callers.actor(request).tokenId,
        admit: () => callers.authenticate(request),
        read: () => overview.all(request.query.span),
        everyMs: liveEveryMs,
      }),
  );
  app.get(
    "/operator/v1/partners/:id/figures",
    operation(viewer.reads, "getPartnerFigures", "Get the statistics of deliveries to a partner", {
      params: partnerParams,
      querystring: spanQuery,
      response: responses([200, figuresSchema, "As of now"], "not_found"),
    }),
    async ({ params, query }) => {
      const { id } = await requirePartner(registry, params.id);
      return await overview.of(id, query.span);
    },
  );
}

/** The state of deliveries to the calling partner. */
export function figuresRoutes({ app, parts, callers }: PartnerRoutes): void {
  app.get(
    "/v1/figures",
    ownOperation(partnerReads, "getFigures", "Get the statistics of deliveries to you", {
      querystring: spanQuery,
      response: responses([200, figuresSchema, "As of now"]),
    }),
    async (request) => {
      const { failures, ...counted } = await parts.overview.of(callers.partner(request).id, request.query.span);
      return { ...counted, failures: failures.map((one) => ({ ...one, reason: reasonForPartner(one.reason) })) };
    },
  );
  app.get(
    "/v1/backlog",
    ownOperation(partnerReads, "getBacklog", "See what you have not received, and how far you have pulled", {
      response: responses([200, backlogSchema, "As of now"]),
    }),
    async (request) => {
      const { id } = callers.partner(request);
      const [backlog, trouble, parked] = await Promise.all([
        parts.notifications.backlog(id),
        parts.overview.troubleOf(id),
        parts.overview.parkedOf(id),
      ]);
      return {
        trouble: trouble && { ...trouble, reason: reasonForPartner(trouble.reason) },
        ...backlog,
        parkedBecause: parked && { ...parked, reason: reasonForPartner(parked.reason) },
      };
    },
  );
}

export const eventStreamType = "text/event-stream";

/** A stream ends after this time; a browser reconnects by itself. */
const streamMs = 5 * 60_000;
const streamsOfCallerMax = 8;
const retryAfterS = 5;

interface EventSource {
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
class EventStreams {
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
      // The answer's `close` comes amid the socket's, which calls this once more.
      if (gone.signal.aborted) return;
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
