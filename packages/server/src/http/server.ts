import Fastify, { type FastifyBaseLogger, type FastifyInstance, type FastifyRequest, LogController } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { newId } from "../ids.ts";
import { bodyBounds, readJson } from "../input/json.ts";
import { auditTrail } from "./audit-trail.ts";
import { OperatorCallers } from "./callers/operator-callers.ts";
import { Callers, type Doors } from "./callers/partner-callers.ts";
import { Sessions } from "./callers/sessions.ts";
import { SignInTrail } from "./callers/sign-in-trail.ts";
import { ViewLinks } from "./callers/view-links.ts";
import { WrongKeys } from "./callers/wrong-keys.ts";
import { consoleOidcRoutes } from "./console/oidc.ts";
import { consolePageRoutes, docsRoutes } from "./console/pages.ts";
import { consoleSessionRoutes } from "./console/session.ts";
import { callbackRoutes, operatorCallbackRoutes } from "./deliveries/callbacks.ts";
import { endpointRoutes, operatorEndpointRoutes } from "./deliveries/endpoints.ts";
import { notificationRoutes, operatorNotificationRoutes } from "./deliveries/notifications.ts";
import { figuresRoutes, overviewRoutes } from "./deliveries/overview.ts";
import { operatorRedeliveryRoutes, redeliveryRoutes } from "./deliveries/redeliveries.ts";
import type { HttpDependencies } from "./dependencies.ts";
import { Connections } from "./limits/connections.ts";
import { RateLimits } from "./limits/rate-limits.ts";
import { validate } from "./operation.ts";
import { operatorClearingRoutes } from "./payments/clearing.ts";
import { commandRoutes, transactionRoutes } from "./payments/commands.ts";
import { completionRoutes } from "./payments/completions.ts";
import { operatorFeedRoutes, operatorMoneyRoutes } from "./payments/money.ts";
import { operatorAcquirerRoutes } from "./payments/registered-acquirers.ts";
import { sandboxRoutes } from "./payments/sandbox.ts";
import { statementRoutes } from "./payments/statements.ts";
import { requirePolicies } from "./policy.ts";
import { handleFailures, refuseBadHttp, refuseBadPath } from "./problems.ts";
import { auditRoutes } from "./registry/audit.ts";
import { keyRoutes, operatorKeyRoutes } from "./registry/keys.ts";
import { operatorRoutes } from "./registry/operators.ts";
import { operatorPartnerRoutes, selfRoutes } from "./registry/partners.ts";
import { proposalRoutes } from "./registry/proposals.ts";
import { secondAdmin } from "./registry/second-admin.ts";
import { terminalRoutes } from "./registry/terminals.ts";
import { viewLinkRoutes } from "./registry/view-links.ts";
import {
  type CallerAddress,
  callerAddress,
  type HttpListener,
  localOnly,
  operatorAddressesOnly,
  refuseAmbiguous,
  securityHeaders,
} from "./request-guards.ts";
import { aliveRoute, serviceRoutes, systemRoutes } from "./service.ts";

/** The interval of the check for requests that take too long. */
const lookEveryMs = 2_000;

/**
 * The partner API, the operator API, health, metrics and their documents, or what of them is this listener's. The
 * caller listens and closes.
 */
export function createHttp(parts: HttpDependencies, listener: HttpListener = "all"): FastifyInstance {
  const address = callerAddress(parts.config.trustedProxies);
  const secured = securityHeaders(parts.config.trustedProxies);
  const refusesPath = refuseBadPath({ ...parts, address });
  const app = Fastify({
    loggerInstance: parts.log as FastifyBaseLogger,
    // The log names requests by their id itself: a child logger for each would cost more than reading the request.
    childLoggerFactory: (logger) => logger,
    logController: new LogController({ disableRequestLogging: true }),
    // No hook runs for these.
    frameworkErrors: (error, request, reply) => {
      reply.headers(secured(request.raw));
      refusesPath(error, request, reply);
    },
    genReqId: () => newId(),
    bodyLimit: bodyBounds.ofPartner.bytesMax,
    requestTimeout: parts.config.requestTimeoutMs,
    keepAliveTimeout: parts.config.keepAliveTimeoutMs,
    http: { headersTimeout: parts.config.headersTimeoutMs, connectionsCheckingInterval: lookEveryMs },
    // While it drains, routes answer `unavailable` with our own error.
    return503OnClosing: false,
    clientErrorHandler: refuseBadHttp,
  });
  requirePolicies(app);
  app.addHook("onRequest", (request, reply, done) => {
    reply.headers(secured(request.raw));
    done();
  });
  const limits = new RateLimits(parts.config, parts.clock, parts.metrics);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, body: Buffer, done) => {
    // For a route without a required body, an empty one counts as none.
    if (body.length === 0) return done(null, undefined);
    const bounds = request.routeOptions.url?.startsWith("/v1/") ? bodyBounds.ofPartner : bodyBounds.ofReport;
    try {
      done(
        null,
        limits.reading(request, body.length, () => readJson(body, bounds)),
      );
    } catch (error) {
      done(error as Error);
    }
  });
  app.setValidatorCompiler(validate);
  // Answers are made by us: their schemas are for the documents, and tests compare the two.
  app.setSerializerCompiler(() => (answer) => JSON.stringify(answer));
  handleFailures(app, { ...parts, address });
  observeRequests(app, { ...parts, address });
  parts.traceRequests?.(app);
  new Connections(parts.config, parts).watch(app);
  app.addHook("onRequest", refuseAmbiguous);
  if (parts.sandbox === true) app.addHook("onRequest", localOnly);
  if (listener === "operators") app.addHook("onRequest", operatorAddressesOnly(parts.config));
  app.addHook("onRequest", limits.ofAddress(address));
  app.addHook("onSend", limits.ofAnswer(address));
  const wrongKeys = new WrongKeys(parts);
  const sessions = new Sessions(parts, listener);
  const doors = {
    operatorTokens: parts.config.operatorTokens,
    ...{ wrongKeys, address, limits, sessions, listener },
    viewLinks: new ViewLinks(parts),
  };
  endConnectionsOnStop(app, parts);
  app.addHook("preClose", (done) => {
    parts.endWaits();
    done();
  });
  parts.documentRoutes?.(app);
  // Each in a scope of its own, after `documentRoutes`, which sees only routes that are added later.
  const isSystemOnly = parts.systemOnly === true;
  const scopes = [
    ...(listener === "operators" || isSystemOnly ? [] : [addPartnerRoutes]),
    ...(listener === "partners" ? [] : [...(isSystemOnly ? [] : [addOperatorRoutes]), addOperatorSystemRoutes]),
    ...(isSystemOnly ? [] : [addConsole]),
    addSystemRoutes,
  ];
  for (const addRoutes of scopes) {
    app.register((scope, _, done) => {
      addRoutes(scope, parts, doors);
      done();
    });
  }
  return app;
}

/**
 * From the beginning of a stop, so that a proxy's connections are gone when the listener closes. One whose request is
 * under way then would otherwise stay open for as long as its keep-alive lasts, and hold the close up: measured, 72 s.
 */
function endConnectionsOnStop(app: FastifyInstance, { isStopping }: Pick<HttpDependencies, "isStopping">): void {
  let closing = false;
  app.addHook("preClose", (done) => {
    closing = true;
    done();
  });
  app.addHook("onSend", (_, reply, __, done) => {
    if (closing || isStopping()) reply.header("connection", "close");
    done();
  });
}

interface Gate extends Doors {
  readonly operatorTokens: readonly string[];
  readonly address: CallerAddress;
  readonly limits: RateLimits;
  readonly sessions: Sessions;
  readonly viewLinks: ViewLinks;
  readonly listener: HttpListener;
}

function addPartnerRoutes(scope: FastifyInstance, parts: HttpDependencies, gate: Gate): void {
  const callers = new Callers(parts, gate.address, gate);
  scope.callers = "partner";
  scope.addHook("onRequest", callers.authenticate);
  scope.addHook("onRequest", gate.limits.ofPartner(callers));
  scope.addHook("onSend", gate.limits.ofPartnerAnswer);
  const who = (request: FastifyRequest) => ({
    actor: `partner ${callers.partner(request).id}`,
    role: "partner",
    tokenId: callers.keyId(request),
    partnerId: callers.partner(request).id,
  });
  auditTrail(scope, parts, who, (request) => gate.address(request.raw) ?? "unknown");
  const routes = { app: scope.withTypeProvider<ZodTypeProvider>(), parts, callers, limits: gate.limits };
  commandRoutes(routes);
  transactionRoutes(routes);
  statementRoutes(routes);
  notificationRoutes(routes);
  redeliveryRoutes(routes);
  endpointRoutes(routes);
  callbackRoutes(routes);
  selfRoutes(routes);
  keyRoutes(routes);
  figuresRoutes(routes);
}

function addConsole(scope: FastifyInstance, parts: HttpDependencies, gate: Gate): void {
  const app = scope.withTypeProvider<ZodTypeProvider>();
  const trail = new SignInTrail({ ...parts, address: gate.address });
  consoleSessionRoutes({
    app,
    parts,
    ...gate,
    trail,
    operators: gate.listener === "partners" ? undefined : new OperatorCallers({ ...gate, operators: parts.operators }),
    partners: gate.listener === "operators" ? undefined : new Callers(parts, gate.address, gate),
  });
  // Operators alone: partners sign in with their API key.
  const oidc = gate.listener === "partners" ? undefined : parts.oidc;
  if (oidc !== undefined) consoleOidcRoutes(oidc, { app, parts, ...gate, trail });
  const isOnly = parts.config.consoleSignIn === "oidc" && gate.listener === "operators";
  consolePageRoutes(scope, { oidc: oidc === undefined ? "none" : isOnly ? "only" : "offered" });
}

function addSystemRoutes(scope: FastifyInstance, parts: HttpDependencies, { listener }: Gate): void {
  aliveRoute(scope.withTypeProvider<ZodTypeProvider>(), parts);
  docsRoutes(scope, parts.config, listener);
}

function addOperatorSystemRoutes(scope: FastifyInstance, parts: HttpDependencies): void {
  systemRoutes(scope.withTypeProvider<ZodTypeProvider>(), parts);
}

function addOperatorRoutes(scope: FastifyInstance, parts: HttpDependencies, gate: Gate): void {
  const callers = new OperatorCallers({ ...gate, operators: parts.operators });
  scope.callers = "operator";
  scope.addHook("onRequest", callers.authenticate);
  const who = (request: FastifyRequest) => {
    const { name, role, tokenId } = callers.actor(request);
    return { actor: name, role, tokenId };
  };
  secondAdmin(scope, parts, callers);
  auditTrail(scope, parts, who, (request) => gate.address(request.raw) ?? "unknown");
  const app = scope.withTypeProvider<ZodTypeProvider>();
  operatorPartnerRoutes(app, parts, callers);
  terminalRoutes(app, parts);
  operatorAcquirerRoutes(app, parts);
  operatorKeyRoutes(app, parts);
  viewLinkRoutes(app, parts, gate.viewLinks, callers);
  completionRoutes(app, parts);
  operatorNotificationRoutes(app, parts);
  operatorRedeliveryRoutes(app, parts);
  operatorEndpointRoutes(app, parts);
  operatorFeedRoutes(app, parts, callers);
  operatorMoneyRoutes(app, parts, callers);
  operatorClearingRoutes(app, parts, callers);
  operatorRoutes(app, parts);
  auditRoutes(app, parts);
  proposalRoutes(app, parts, callers);
  overviewRoutes(app, parts, callers);
  operatorCallbackRoutes(app, parts);
  serviceRoutes(app, parts);
  sandboxRoutes(app, parts);
}

/** Every answer names its request, is never cached, is counted, and at debug is a line of the log. */
function observeRequests(
  app: FastifyInstance,
  { log, metrics, address }: Pick<HttpDependencies, "log" | "metrics"> & { readonly address: CallerAddress },
): void {
  // An increase is seen only of a series that exists: the alerts need the first one of each route.
  app.addHook("onRoute", ({ method, url: route }) => {
    for (const status of ["500", "503"]) metrics.requests.inc({ method: String(method), route, status }, 0);
  });
  app.addHook("onRequest", async (request, reply) => {
    reply.header("x-request-id", request.id).header("cache-control", "no-store");
  });
  app.addHook("onResponse", async (request, reply) => {
    const { method, url: route = "none" } = request.routeOptions;
    const durationMs = reply.elapsedTime;
    metrics.requests.inc({ method: String(method ?? request.method), route, status: String(reply.statusCode) });
    // The time of waiting says nothing about our speed.
    if (!mayWait(request)) metrics.requestSeconds.observe({ route }, durationMs / 1000);
    if (!log.isLevelEnabled("debug")) return;
    log.debug(
      {
        requestId: request.id,
        address: address(request.raw),
        method: request.method,
        route,
        status: reply.statusCode,
        durationMs,
      },
      "answered",
    );
  });
}

function mayWait({ query }: FastifyRequest): boolean {
  return Object.hasOwn(Object(query), "wait");
}
