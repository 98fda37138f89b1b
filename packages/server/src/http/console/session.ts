import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { csrfHeader } from "../../error-table.ts";
import { ServiceError } from "../../errors.ts";
import { readId } from "../../ids.ts";
import { component, described } from "../../input/descriptions.ts";
import { isOperatorToken, roles } from "../../operators/operators.ts";
import { apiKeyScopes } from "../../partners/api-keys.ts";
import { isApiKey } from "../../partners/keys.ts";
import type { OperatorCallers } from "../callers/operator-callers.ts";
import type { Callers } from "../callers/partner-callers.ts";
import type { OpenSession, Sessions } from "../callers/sessions.ts";
import type { SignInTrail } from "../callers/sign-in-trail.ts";
import { isViewLink } from "../callers/view-links.ts";
import type { WrongKeys } from "../callers/wrong-keys.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { operations, responses } from "../operation.ts";
import { anybody } from "../policy.ts";
import type { CallerAddress } from "../request-guards.ts";

const sessionBody = component(
  z
    .strictObject({
      token: described(
        z.string().max(1_024),
        "An operator's token, a partner's API key, or that of a view link; not needed in the sandbox",
      ),
    })
    .partial()
    .optional(),
  "SignIn",
  "Who signs in",
);

const every = {
  csrf: described(z.string(), `Send it as the header \`${csrfHeader}\` with every request that changes something`),
  expiresAt: described(z.iso.datetime(), "Unless the session is read again before"),
  sandbox: described(z.boolean(), "Local, with a test acquirer: anybody on this machine may sign in"),
};

const scopes = described(z.array(z.enum(apiKeyScopes)).nullable(), "Of the API key; null: everything");

const view = described(
  z.object({ by: z.string(), until: z.iso.datetime() }).nullable(),
  "It was opened by an operator's link, reads only, and ends then; null: by an API key",
);

const sessionSchema = component(
  z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("operator"), name: z.string(), role: z.enum(roles), ...every }),
    z.object({ kind: z.literal("partner"), name: z.string(), partnerId: z.uuid(), scopes, view, ...every }),
  ]),
  "Session",
  "Who is signed in to the console",
);

const operation = operations("Console");

interface ConsoleSessionRoutes {
  readonly app: HttpApp;
  readonly parts: Pick<HttpDependencies, "config" | "sandbox" | "operators" | "directory">;
  readonly sessions: Sessions;
  readonly trail: SignInTrail;
  readonly wrongKeys: WrongKeys;
  readonly address: CallerAddress;
  /** Undefined where operators have a listener of their own, and this is not it. */
  readonly operators: OperatorCallers | undefined;
  readonly partners: Callers | undefined;
}

const signedIn = [200, sessionSchema, "Who is signed in"] as const;
const refusals = [
  "unauthorized",
  "address_not_allowed",
  "partner_disabled",
  "oidc_sign_in_required",
  "too_many_requests",
] as const;

/** /console/session: sign-in of the console's pages by a token, stored in a cookie that no script can read. */
export function consoleSessionRoutes(routes: ConsoleSessionRoutes): void {
  const { app, parts, sessions, trail, wrongKeys, address, operators, partners } = routes;
  const sandbox = parts.sandbox === true;

  const whoHas = async (request: FastifyRequest, token: string) => {
    const operator = await operators?.find(token);
    if (operator !== undefined) {
      if (parts.config.consoleSignIn === "oidc" && operator.subject === null) {
        throw new ServiceError("oidc_sign_in_required", "Tokens of operators do not sign in to the console here.");
      }
      return { kind: "operator" as const, name: operator.name, role: operator.role };
    }
    const view = await partners?.view(request, token);
    if (view !== undefined) {
      const { partner, by, endsAtMs } = view;
      const until = new Date(endsAtMs).toISOString();
      const named = { name: partner.settings.name, partnerId: partner.id, scopes: ["read"] as const };
      return { kind: "partner" as const, ...named, view: { by, until } };
    }
    const isNobodys = async () => isOperatorToken(token) || (await parts.directory.findByApiKey(token)) === undefined;
    if (partners === undefined || (await isNobodys())) {
      return wrongKeys.refuse(address(request.raw), refusalOf(token, routes));
    }
    const { partner, scopes } = await partners.admit(request, token);
    return { kind: "partner" as const, name: partner.settings.name, partnerId: partner.id, scopes, view: null };
  };

  /** As the audit names them, also where they could not sign in any more. */
  const ownerOf = async (request: FastifyRequest, token: string) => {
    const view = await partners?.view(request, token);
    if (view !== undefined) {
      const who = { actor: `partner ${view.partnerId}`, role: "view link", tokenId: view.id };
      return { who, subject: null, by: "view link" as const };
    }
    const operator = await operators?.find(token);
    if (operator !== undefined) {
      const { name: actor, role, tokenId, subject } = operator;
      return { who: { actor, role, tokenId }, subject, by: "token" as const };
    }
    const holder = await parts.directory.findByApiKey(token);
    const by = "token" as const;
    if (holder === undefined) return { who: { actor: "", role: "", tokenId: "" }, subject: null, by };
    const { partner, keyId } = holder;
    return { who: { actor: `partner ${partner.id}`, role: "partner", tokenId: keyId }, subject: null, by };
  };

  const signIn = async (request: FastifyRequest, token: string) => {
    try {
      const signing = await whoHas(request, token);
      const { who, by } = await ownerOf(request, token);
      trail.limit(who.tokenId);
      await trail.began(request, who, by);
      return signing;
    } catch (error) {
      // A throttled caller is an event, and counted. An unavailable audit has no room for a refusal either.
      const isRefusal = error instanceof ServiceError && !["too_many_requests", "unavailable"].includes(error.code);
      if (isRefusal) await trail.refused(request, { reason: error.code });
      throw error;
    }
  };

  const answer = (reply: FastifyReply, who: Awaited<ReturnType<typeof whoHas>>, session: OpenSession) => {
    const { cookie, csrf, expiresAtMs } = session;
    reply.header("set-cookie", cookie).header("cache-control", "no-store");
    return { ...who, csrf, expiresAt: new Date(expiresAtMs).toISOString(), sandbox };
  };

  app.post(
    "/console/session",
    operation(anybody, "signIn", "Sign in to the console", {
      description: "The answer sets a cookie that the operator API or the partner API takes in place of the token.",
      body: sessionBody,
      response: responses(signedIn, ...refusals),
    }),
    async (request, reply) => {
      const [sandboxToken] = sandbox ? parts.config.operatorTokens : [];
      const token = request.body?.token ?? sandboxToken;
      if (token === undefined) throw new ServiceError("unauthorized", "Sign in with a token.");
      return answer(reply, await signIn(request, token), sessions.begin(request, token));
    },
  );
  app.get(
    "/console/session",
    operation(anybody, "getSession", "See who is signed in, and stay signed in", {
      response: responses(signedIn, ...refusals),
    }),
    async (request, reply) => {
      const token = await sessions.tokenOf(request);
      const session = await sessions.renew(request);
      // No key was sent, so it does not count as a wrong one.
      if (token === undefined || session === undefined) throw new ServiceError("unauthorized", "Nobody is signed in.");
      return answer(reply, await whoHas(request, token), session);
    },
  );
  app.delete(
    "/console/session",
    operation(anybody, "signOut", "Sign out of the console", {
      response: responses([204, z.null(), "The browser forgets the session"], "csrf"),
    }),
    async (request, reply) => {
      // Requires the page's CSRF token.
      await sessions.tokenOf(request);
      const token = await sessions.end(request);
      if (token !== undefined) {
        const { who, subject } = await ownerOf(request, token);
        // The token of a sign-in by OpenID was made for this session alone.
        const id = subject === null ? undefined : readId<"operator">(who.tokenId);
        if (id !== undefined) await parts.operators.revoke(id);
        await trail.ended(request, who, subject ?? "");
      }
      return reply.code(204).header("set-cookie", sessions.forget(request)).send(null);
    },
  );
}

function refusalOf(token: string, { operators, partners }: ConsoleSessionRoutes): string {
  if (isViewLink(token)) return "The link has expired, or was revoked: ask your operator for another one.";
  const nobodys = "Nobody has this token: it is mistyped, revoked or expired.";
  if (partners === undefined && isApiKey(token)) return "Partners sign in where they call the API, not here.";
  if (operators !== undefined || isApiKey(token)) return nobodys;
  // The token of the settings has no form of its own.
  return isOperatorToken(token)
    ? "Operators sign in at their own address, not here."
    : `${nobodys} A partner's API key begins with pb_; operators sign in at their own address.`;
}
