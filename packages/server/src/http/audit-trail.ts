import type { FastifyInstance, FastifyRequest } from "fastify";
import { type PartnerId, readId } from "../ids.ts";
import type { AuditEntry } from "../operators/audit.ts";
import type { HttpDependencies } from "./dependencies.ts";

/** The actor in the audit; a partner's also has its id. */
export type RequestActor = (
  request: FastifyRequest,
) => Pick<AuditEntry, "actor" | "role" | "tokenId"> & { readonly partnerId?: PartnerId };

/** Recorded elsewhere: in the ledger. */
const inTheLedger: ReadonlySet<string> = new Set(["runCommand", "runSandboxCommand", "reportCompletions"]);
/** Reads that are recorded like actions, because they show the content of IPNs or of reports. */
const looks: ReadonlySet<string> = new Set([
  "readNotification",
  "proveDelivery",
  "exportHistory",
  "exportPartner",
  "inspectEvent",
]);
/** Actions that are one change in the database: the entry is part of its transaction. */
const inSql: ReadonlySet<string> = new Set([
  "registerPartner",
  "changePartner",
  "rotateKey",
  "rotateOwnKey",
  "pausePartner",
  "resumePartner",
  "disablePartner",
  "putTerminal",
  "removeTerminal",
  "putCallbackCertificate",
  "removeCallbackCertificate",
  "putAcquirer",
  "removeAcquirer",
  "addApiKey",
  "revokeApiKey",
  "addOwnApiKey",
  "revokeOwnApiKey",
  "addOperator",
  "revokeOperator",
  "proposeRotateKey",
  "proposeApiKey",
  "proposeOperator",
  "proposePartnerChange",
  "proposeTwoAdminRule",
  "changeTwoAdminRule",
  "withdrawProposal",
]);
const charactersMax = 16_384;

/**
 * Records every action: the actor, the address, and the change. No action happens without an entry:
 *
 * - One that is a change in the database appends its entry in the same transaction. If it cannot, nothing is changed.
 * - Any other one commits an entry of its intent first, and one of its outcome before its answer is sent.
 * - A look commits its entry before anything is shown.
 *
 * A change of a partner, a terminal, an acquirer or an operator has its state before and after; any other action has
 * its input.
 */
export function auditTrail(
  scope: FastifyInstance,
  parts: HttpDependencies,
  who: RequestActor,
  addressOf: (r: FastifyRequest) => string,
) {
  const before = new WeakMap<FastifyRequest, string>();
  const recorded = new WeakSet<FastifyRequest>();
  const entryOf = (request: FastifyRequest, subject: string, after: string, intent = ""): AuditEntry => {
    const { partnerId: _, ...actor } = who(request);
    return {
      atMs: parts.clock.nowMs(),
      ...actor,
      address: addressOf(request),
      action: intent + actionOf(request),
      subject: [subjectOf(request), madeBy.get(request)].filter(Boolean).join("/") || subject,
      before: before.get(request) ?? "",
      after,
    };
  };
  scope.addHook("onRoute", (route) => {
    const { handler } = route;
    if (!inSql.has(operationOf(route.schema))) return;
    route.handler = function audited(request, reply) {
      const compose = async (made: string) =>
        entryOf(request, made, await afterwards(parts, request, who(request).partnerId));
      return parts.audit.during(
        compose,
        () => recorded.add(request),
        () => handler.call(this, request, reply),
      );
    };
  });
  scope.addHook("preHandler", async (request) => {
    if (!isAudited(request)) return;
    before.set(request, (await stateOf(parts, request, who(request).partnerId)) ?? "");
    if (isOutside(request)) await parts.audit.append(entryOf(request, "", askedFor(request), intentPrefix));
  });
  scope.addHook("onSend", async (request, reply, payload) => {
    if (!isAudited(request) || recorded.has(request)) return payload;
    if (isOutside(request)) {
      if (before.has(request)) await outcome(request, reply.statusCode);
    } else if (reply.statusCode < 400) {
      const after = await afterwards(parts, request, who(request).partnerId);
      await parts.audit.append(entryOf(request, "", after));
    }
    return payload;
  });
  const outcome = async (request: FastifyRequest, status: number) => {
    recorded.add(request);
    const after = status < 400 ? await afterwards(parts, request, who(request).partnerId) : JSON.stringify({ status });
    const entry = entryOf(request, "", after);
    try {
      await parts.audit.append(entry);
    } catch (error) {
      // The action is done, and its intent is recorded: refusing now would only hide its result.
      parts.log.error({ err: error, audit: entry }, "an outcome could not be audited: this line has it");
    }
  };
}

const madeBy = new WeakMap<FastifyRequest, string>();

/** The outcome of this request's action is about this object, too, which the action made. */
export function auditMade(request: FastifyRequest, id: string): void {
  madeBy.set(request, id);
}

/** Begins the name of an action that is about to happen. */
const intentPrefix = "begin ";

function isAudited(request: FastifyRequest): boolean {
  const action = actionOf(request);
  if (looks.has(action)) return true;
  return request.method !== "GET" && request.method !== "HEAD" && !inTheLedger.has(action);
}

/** Whether an action does more than one change in the database. */
function isOutside(request: FastifyRequest): boolean {
  const action = actionOf(request);
  return !inSql.has(action) && !looks.has(action);
}

function actionOf({ routeOptions }: FastifyRequest): string {
  return operationOf(routeOptions.schema);
}

function operationOf(schema: unknown): string {
  return ((schema ?? {}) as { operationId?: string }).operationId ?? "";
}

interface Params {
  readonly id?: string;
  readonly tid?: string;
  readonly keyId?: string;
  readonly linkId?: string;
  readonly name?: string;
  readonly day?: string;
}

type StateReader = (parts: HttpDependencies, params: Params) => Promise<unknown>;

/**
 * Readers of the object that a route changes; none contains a secret. The first matching prefix of the path is used.
 */
const states: readonly (readonly [path: string, read: StateReader])[] = [
  ["/operator/v1/partners/:id/terminals/:tid", ofPartner((registry, id, { tid = "" }) => registry.terminal(id, tid))],
  // Links are kept by nobody: their ids are the entries' subjects.
  ["/operator/v1/partners/:id/view-links", async () => undefined],
  ["/operator/v1/partners/:id", ofPartner((registry, id) => registry.find(id))],
  [
    "/operator/v1/proposals/:id",
    async ({ proposals }, { id = "" }) => {
      const known = readId<"proposal">(id);
      return known && proposals.find(known);
    },
  ],
  ["/operator/v1/two-admin-rule", async ({ proposals }) => ({ minutes: await proposals.rule() })],
  ["/operator/v1/acquirers/:name", async ({ acquirers }, { name = "" }) => acquirers.find(name)],
  [
    "/operator/v1/operators/:id",
    async ({ operators }, { id }) => (await operators.list()).find((one) => one.id === id),
  ],
];

function ofPartner(
  read: (registry: HttpDependencies["registry"], id: PartnerId, params: Params) => Promise<unknown>,
): StateReader {
  return async ({ registry }, params) => {
    const id = readId<"partner">(params.id ?? "");
    return id && read(registry, id, params);
  };
}

/** The state of the object, or else the request's input. Empty where it cannot be read: the action is done. */
async function afterwards(
  parts: HttpDependencies,
  request: FastifyRequest,
  caller: PartnerId | undefined,
): Promise<string> {
  try {
    return (await stateOf(parts, request, caller)) ?? askedFor(request);
  } catch (error) {
    parts.log.error({ err: error, requestId: request.id }, "the state after an action could not be read for the audit");
    return "";
  }
}

/**
 * @param caller the partner that calls, where one does: its own API keys are part of its state
 * @returns empty if the object is gone; undefined if the route changes none, and only then its input holds no secret
 */
async function stateOf(
  parts: HttpDependencies,
  { params, routeOptions: { url = "" } }: FastifyRequest,
  caller: PartnerId | undefined,
): Promise<string | undefined> {
  if ((url.startsWith("/v1/api-keys") || url.startsWith("/v1/keys/")) && caller !== undefined)
    return cut(await parts.registry.find(caller));
  const [, read] = states.find(([path]) => url.startsWith(path)) ?? [];
  if (read === undefined) return undefined;
  const state = await read(parts, params as Params);
  return state === undefined ? "" : cut(state);
}

/** Empty for a route that makes an object: its transaction names it. */
function subjectOf({ params }: FastifyRequest): string {
  const { id, tid, keyId, linkId, name, day } = params as Params;
  return [id, tid, keyId, linkId, name, day].filter((part) => part !== undefined).join("/");
}

function askedFor({ body }: FastifyRequest): string {
  return body === undefined || body === null ? "" : cut(body);
}

function cut(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text;
}
