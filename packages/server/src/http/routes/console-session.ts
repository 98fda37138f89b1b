import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { readId } from "../../ids.ts";
import { type Actor, isOperatorToken } from "../../operators/operator.ts";
import { isApiKey } from "../../partners/secrets.ts";
import type { Callers } from "../authenticate.ts";
import type { CallerAddress } from "../caller.ts";
import type { OperatorCallers } from "../operator-callers.ts";
import type { HttpApp, HttpParts } from "../parts.ts";
import { bodyErrors, responses } from "../schemas/problem.ts";
import { sessionBody, sessionSchema } from "../schemas/session.ts";
import type { OpenSession, Sessions } from "../sessions.ts";
import type { WrongKeys } from "../wrong-keys.ts";

export interface ConsoleSessionRoutes {
  readonly app: HttpApp;
  readonly parts: Pick<HttpParts, "config" | "sandbox" | "operators" | "audit" | "clock">;
  readonly sessions: Sessions;
  readonly wrongKeys: WrongKeys;
  readonly address: CallerAddress;
  /** Undefined where operators have a listener of their own, and this is not it. */
  readonly operators: OperatorCallers | undefined;
  readonly partners: Callers | undefined;
}

const tags = ["Console"];
const signedIn = { 200: { schema: sessionSchema, description: "Who is signed in" } };
const refusals = ["unauthorized", "address_not_allowed", "partner_disabled", "too_many_requests"] as const;

/** /console/session: sign-in of the console's pages by a token, stored in a cookie that no script can read. */
export function consoleSessionRoutes(routes: ConsoleSessionRoutes): void {
  const { app, parts, sessions, wrongKeys, address, operators, partners } = routes;
  const sandbox = parts.sandbox === true;

  const whoHas = async (request: FastifyRequest, token: string) => {
    const operator = await operators?.find(token);
    if (operator !== undefined) return { kind: "operator" as const, name: operator.name, role: operator.role };
    if (partners === undefined || isOperatorToken(token)) {
      return wrongKeys.refuse(address(request.raw), refusalOf(token, routes));
    }
    const { partner } = await partners.admit(request, token);
    return { kind: "partner" as const, name: partner.settings.name, partnerId: partner.id };
  };

  /** Its token was made for this session alone: a copy of the cookie ends with it. */
  const endSignIn = async (request: FastifyRequest, { name, role, tokenId }: Actor, subject: string) => {
    const id = readId<"operator">(tokenId);
    if (id !== undefined) await parts.operators.revoke(id);
    await parts.audit.append({
      ...{ atMs: parts.clock.nowMs(), actor: name, role, tokenId, address: address(request.raw) ?? "unknown" },
      ...{ action: "signOut", subject, before: "", after: "" },
    });
  };

  const answer = (reply: FastifyReply, who: Awaited<ReturnType<typeof whoHas>>, session: OpenSession) => {
    const { cookie, csrf, expiresAtMs } = session;
    reply.header("set-cookie", cookie).header("cache-control", "no-store");
    return { ...who, csrf, expiresAt: new Date(expiresAtMs).toISOString(), sandbox };
  };

  app.post(
    "/console/session",
    {
      schema: {
        operationId: "signIn",
        tags,
        summary: "Sign in to the console",
        description: "The answer sets a cookie that the operator API or the partner API takes in place of the token.",
        body: sessionBody,
        response: responses(signedIn, ...refusals, ...bodyErrors),
      },
    },
    async (request, reply) => {
      const [sandboxToken] = sandbox ? parts.config.operatorTokens : [];
      const token = request.body?.token ?? sandboxToken;
      if (token === undefined) throw new ServiceError("unauthorized", "Sign in with a token.");
      return answer(reply, await whoHas(request, token), sessions.begin(request, token));
    },
  );
  app.get(
    "/console/session",
    {
      schema: {
        operationId: "getSession",
        tags,
        summary: "See who is signed in, and stay signed in",
        response: responses(signedIn, ...refusals),
      },
    },
    async (request, reply) => {
      const token = sessions.tokenOf(request);
      const session = sessions.renew(request);
      // Nobody has tried a key: it does not count as a wrong one.
      if (token === undefined || session === undefined) throw new ServiceError("unauthorized", "Nobody is signed in.");
      return answer(reply, await whoHas(request, token), session);
    },
  );
  app.delete(
    "/console/session",
    {
      schema: {
        operationId: "signOut",
        tags,
        summary: "Sign out of the console",
        response: responses({ 204: { schema: z.null(), description: "The browser forgets the session" } }, "csrf"),
      },
    },
    async (request, reply) => {
      const token = sessions.tokenOf(request);
      const actor = token === undefined ? undefined : await operators?.find(token);
      if (actor !== undefined && actor.subject !== null) await endSignIn(request, actor, actor.subject);
      return reply.code(204).header("set-cookie", sessions.end(request)).send(null);
    },
  );
}

function refusalOf(token: string, { operators, partners }: ConsoleSessionRoutes): string {
  if (isApiKey(token) && partners === undefined) return "Partners sign in where they call the API, not here.";
  if (operators === undefined) return "Operators sign in at their own address, not here.";
  return "Nobody has this token: it is mistyped, revoked or expired.";
}
