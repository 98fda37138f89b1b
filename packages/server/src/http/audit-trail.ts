import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { maskCardNumbers } from "../guards/card-number.ts";
import { type PartnerId, readId } from "../ids.ts";
import type { AuditEntry } from "../operators/audit.ts";
import type { HttpDependencies } from "./dependencies.ts";
import type { AuditedState } from "./policy.ts";

/** The actor in the audit; a partner's also has its id. */
export type RequestActor = (
  request: FastifyRequest,
) => Pick<AuditEntry, "actor" | "role" | "tokenId"> & { readonly partnerId?: PartnerId };

const charactersMax = 16_384;

/**
 * Records every action of a scope, as the policies of its routes say: the actor, the address, and the state before and
 * after. No action happens without an entry.
 */
export function auditTrail(
  scope: FastifyInstance,
  parts: HttpDependencies,
  who: RequestActor,
  addressOf: (r: FastifyRequest) => string,
): void {
  const before = new WeakMap<FastifyRequest, string>();
  const recorded = new WeakSet<FastifyRequest>();
  const entryOf = (request: FastifyRequest, after: string, made = "", intent = ""): AuditEntry => {
    const { partnerId: _, ...actor } = who(request);
    const { operationId = "" } = (request.routeOptions.schema ?? {}) as { readonly operationId?: string };
    return {
      atMs: parts.clock.nowMs(),
      ...actor,
      address: addressOf(request),
      action: intent + operationId,
      subject: [subjectOf(request), madeBy.get(request)].filter(Boolean).join("/") || made,
      before: before.get(request) ?? "",
      after,
    };
  };
  /** Empty if the object is gone. */
  const stateOf = async (request: FastifyRequest, of: Exclude<AuditedState, "input">) => {
    const state = await states[of](parts, request.params as Params, who(request).partnerId);
    return state === undefined ? "" : cut(state);
  };
  /** Empty where it cannot be read: the action is done. */
  const afterwards = async (request: FastifyRequest, of: AuditedState) => {
    if (of === "input") return askedFor(request);
    try {
      return await stateOf(request, of);
    } catch (error) {
      const message = "the state after an action could not be read for the audit";
      parts.log.error({ err: error, requestId: request.id }, message);
      return "";
    }
  };
  const outcome = async (request: FastifyRequest, status: number, of: AuditedState) => {
    const entry = entryOf(request, status < 400 ? await afterwards(request, of) : JSON.stringify({ status }));
    try {
      await parts.audit.append(entry);
    } catch (error) {
      // The action is done, and its intent is recorded: refusing now would only hide its result.
      parts.log.error({ err: error, audit: entry }, "an outcome could not be audited: this line has it");
    }
  };
  scope.addHook("onRoute", (route) => {
    const { handler, config } = route;
    const audit = config?.policy && "audit" in config.policy ? config.policy.audit : undefined;
    if (audit === undefined || !("of" in audit)) return;
    const { kind, of } = audit;
    if (kind === "change") {
      route.handler = function audited(request, reply) {
        return parts.audit.during(
          async (made) => entryOf(request, await afterwards(request, of), made),
          () => recorded.add(request),
          () => handler.call(this, request, reply),
        );
      };
    }
    const begin = async (request: FastifyRequest) => {
      before.set(request, of === "input" ? "" : await stateOf(request, of));
      if (kind === "action") await parts.audit.append(entryOf(request, askedFor(request), "", intentPrefix));
    };
    const end = async (request: FastifyRequest, { statusCode }: FastifyReply, payload: unknown) => {
      if (recorded.has(request)) return payload;
      if (kind !== "action") {
        if (statusCode < 400) await parts.audit.append(entryOf(request, await afterwards(request, of)));
      } else if (before.has(request)) {
        recorded.add(request);
        await outcome(request, statusCode, of);
      }
      return payload;
    };
    route.preHandler = [route.preHandler ?? [], begin].flat();
    route.onSend = [end, route.onSend ?? []].flat();
  });
}

const madeBy = new WeakMap<FastifyRequest, string>();

/** The outcome of this request's action is about this object, too, which the action made. */
export function auditMade(request: FastifyRequest, id: string): void {
  madeBy.set(request, id);
}

/** Begins the name of an action that is about to happen. */
const intentPrefix = "begin ";

interface Params {
  readonly id?: string;
  readonly tid?: string;
  readonly keyId?: string;
  readonly linkId?: string;
  readonly name?: string;
  readonly day?: string;
}

type StateReader = (parts: HttpDependencies, params: Params, caller: PartnerId | undefined) => Promise<unknown>;

/** Readers of the objects that routes change. None contains a secret. */
const states: Readonly<Record<Exclude<AuditedState, "input">, StateReader>> = {
  partner: ofPartner((registry, id) => registry.find(id)),
  caller: async ({ registry }, _, caller) => caller && registry.find(caller),
  terminal: ofPartner((registry, id, { tid = "" }) => registry.terminal(id, tid)),
  acquirer: async ({ acquirers }, { name = "" }) => acquirers.find(name),
  operator: async ({ operators }, { id }) => (await operators.list()).find((one) => one.id === id),
  proposal: async ({ proposals }, { id = "" }) => {
    const known = readId<"proposal">(id);
    return known && proposals.find(known);
  },
  rule: async ({ proposals }) => ({ minutes: await proposals.rule() }),
  // Links are kept by nobody: their ids are the entries' subjects.
  link: async () => undefined,
};

function ofPartner(
  read: (registry: HttpDependencies["registry"], id: PartnerId, params: Params) => Promise<unknown>,
): StateReader {
  return async ({ registry }, params) => {
    const id = readId<"partner">(params.id ?? "");
    return id && read(registry, id, params);
  };
}

/** Empty for a route that makes an object: its transaction names it. */
function subjectOf({ params }: FastifyRequest): string {
  const { id, tid, keyId, linkId, name, day } = params as Params;
  return withoutCards([id, tid, keyId, linkId, name, day].filter((part) => part !== undefined).join("/"));
}

function askedFor({ body }: FastifyRequest): string {
  if (body === undefined || body === null) return "";
  return cut(body, (_, value) => (typeof value === "string" ? withoutCards(value) : value));
}

/** An intent is recorded before what the caller wrote is judged, and an entry stays for years. */
function withoutCards(text: string): string {
  return maskCardNumbers(Buffer.from(text)).toString();
}

function cut(value: unknown, replacer?: (name: string, value: unknown) => unknown): string {
  const text = JSON.stringify(value, replacer);
  return text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text;
}
