import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { newId } from "../ids.ts";
import { Callers, operatorAuthentication } from "./authenticate.ts";
import { callerAddress } from "./caller.ts";
import { Connections } from "./connections.ts";
import { handleFailures, refuseBadHttp, refuseBadPath } from "./failures.ts";
import { readJson } from "./json.ts";
import { localOnly } from "./local-only.ts";
import { observeRequests } from "./observe.ts";
import { documentRoutes } from "./openapi.ts";
import type { HttpParts } from "./parts.ts";
import { commandRoutes } from "./routes/commands.ts";
import { completionRoutes } from "./routes/completions.ts";
import { docsRoutes } from "./routes/docs.ts";
import { endpointRoutes } from "./routes/endpoints.ts";
import { notificationRoutes } from "./routes/notifications.ts";
import { operatorEndpointRoutes } from "./routes/operator-endpoints.ts";
import { operatorNotificationRoutes } from "./routes/operator-notifications.ts";
import { operatorPartnerRoutes } from "./routes/operator-partners.ts";
import { selfRoutes } from "./routes/self.ts";
import { systemRoutes } from "./routes/system.ts";
import { transactionRoutes } from "./routes/transactions.ts";
import { validate } from "./validation.ts";

const bodyBytesMax = 64 * 1024;
/** How often it is looked for requests that take too long. */
const lookEveryMs = 2_000;
const apiVersion = "1.0.0";

/** The partner API, the operator API, health, metrics and their documents. The caller listens and closes. */
export function createHttp(parts: HttpParts): FastifyInstance {
  const app = Fastify({
    loggerInstance: parts.log as FastifyBaseLogger,
    // The log names requests by their id itself: a child logger for each would cost more than reading the request.
    childLoggerFactory: (logger) => logger,
    logController: new LogController({ disableRequestLogging: true }),
    frameworkErrors: refuseBadPath(parts.log),
    genReqId: () => newId(),
    bodyLimit: bodyBytesMax,
    requestTimeout: parts.config.requestTimeoutMs,
    keepAliveTimeout: parts.config.keepAliveTimeoutMs,
    http: { headersTimeout: parts.config.headersTimeoutMs, connectionsCheckingInterval: lookEveryMs },
    // While it drains, whoever takes a request says `unavailable` in our words where it must.
    return503OnClosing: false,
    clientErrorHandler: refuseBadHttp,
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_, body: Buffer, done) => {
    // A route without a required body takes an empty one as none.
    if (body.length === 0) return done(null, undefined);
    try {
      done(null, readJson(body));
    } catch (error) {
      done(error as Error);
    }
  });
  app.setValidatorCompiler(validate);
  // Answers are made by us: their schemas are for the documents, and tests hold the two together.
  app.setSerializerCompiler(() => (answer) => JSON.stringify(answer));
  handleFailures(app, parts);
  observeRequests(app, parts);
  new Connections(parts.config.connectionsMax, parts).watch(app);
  if (parts.sandbox === true) app.addHook("onRequest", localOnly);
  endConnectionsOnClose(app);
  app.addHook("preClose", (done) => {
    parts.endWaits();
    done();
  });
  documentRoutes(app, apiVersion);
  // Each in a scope of its own, after the documents' plugin: it sees only routes that are added later.
  app.register((scope, _, done) => {
    addPartnerRoutes(scope, parts);
    done();
  });
  app.register((scope, _, done) => {
    addOperatorRoutes(scope, parts);
    done();
  });
  app.register((scope, _, done) => {
    systemRoutes(scope.withTypeProvider<ZodTypeProvider>(), parts);
    docsRoutes(scope);
    done();
  });
  return app;
}

/**
 * The framework ends connections that are idle when the close begins. One whose request was under way then would stay
 * open after its answer, for as long as its keep-alive lasts, and hold the close up: measured, 72 s.
 */
function endConnectionsOnClose(app: FastifyInstance): void {
  let closing = false;
  app.addHook("preClose", (done) => {
    closing = true;
    done();
  });
  app.addHook("onSend", (_, reply, __, done) => {
    if (closing) reply.header("connection", "close");
    done();
  });
}

function addPartnerRoutes(scope: FastifyInstance, parts: HttpParts): void {
  const callers = new Callers(parts.directory, callerAddress(parts.config.trustedProxies));
  scope.addHook("onRequest", callers.authenticate);
  const routes = { app: scope.withTypeProvider<ZodTypeProvider>(), parts, callers };
  commandRoutes(routes);
  transactionRoutes(routes);
  notificationRoutes(routes);
  endpointRoutes(routes);
  selfRoutes(routes);
}

function addOperatorRoutes(scope: FastifyInstance, parts: HttpParts): void {
  scope.addHook("onRequest", operatorAuthentication(parts.config.operatorTokens));
  const app = scope.withTypeProvider<ZodTypeProvider>();
  operatorPartnerRoutes(app, parts);
  completionRoutes(app, parts);
  operatorNotificationRoutes(app, parts);
  operatorEndpointRoutes(app, parts);
}
