import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { callbackPath, type OidcAttempt, OidcRefusal, type OidcSignIn } from "../../operators/oidc.ts";
import { SealedCookie, type Sessions } from "../callers/sessions.ts";
import type { SignInTrail } from "../callers/sign-in-trail.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import type { HttpListener } from "../request-guards.ts";

interface ConsoleOidcRoutes {
  readonly app: HttpApp;
  readonly parts: Pick<HttpDependencies, "operators" | "clock" | "log" | "sessionKey">;
  readonly sessions: Sessions;
  readonly trail: SignInTrail;
  readonly listener: HttpListener;
}

interface Begun extends OidcAttempt {
  readonly beganMs: number;
  /** The page to come back to. */
  readonly page: string;
}

/** The time that a person may take at the provider. */
const attemptMs = 10 * 60_000;
const pageCharactersMax = 1_024;

/**
 * /console/sign-in leads to the OpenID provider, which leads back to /console/sign-in/callback. No browser sends a
 * `SameSite=Strict` cookie along with that way back, because another site began it. Therefore the attempt has a cookie
 * of its own, which is `Lax`, lasts for ten minutes, and is sent to these routes alone. The session's cookie is Strict
 * as ever: the redirect to the page goes without it, and the page's own requests bring it.
 */
export function consoleOidcRoutes(oidc: OidcSignIn, routes: ConsoleOidcRoutes): void {
  const { app, parts, sessions, trail, listener } = routes;
  const cookie = new SealedCookie<Begun>(parts.sessionKey, {
    name: `paybell_${listener}_sign_in`,
    path: "/console/sign-in",
    sameSite: "lax",
  });

  /** The page has its own message for the reason; the provider's message is for the log and the audit. */
  const refuse = async (request: FastifyRequest, reply: FastifyReply, error: OidcRefusal) => {
    const { reason, message, subject = "" } = error;
    parts.log.warn({ reason, detail: message, subject }, "a sign-in by OpenID was refused");
    await trail.refused(request, { reason, message }, subject);
    return reply.redirect(`/console?sign-in=${reason}`, 303);
  };

  app.get(
    "/console/sign-in",
    { schema: { hide: true, querystring: z.object({ page: z.string().max(pageCharactersMax).optional() }) } },
    async (request, reply) => {
      reply.header("cache-control", "no-store");
      try {
        const { url, attempt } = await oidc.begin();
        const begun = { ...attempt, beganMs: parts.clock.nowMs(), page: pageOfConsole(request.query.page) };
        return reply.header("set-cookie", cookie.write(request, begun, attemptMs / 1_000)).redirect(url, 303);
      } catch (error) {
        if (error instanceof OidcRefusal) return refuse(request, reply, error);
        throw error;
      }
    },
  );

  app.get(callbackPath, { schema: { hide: true } }, async (request, reply) => {
    const begun = cookie.read(request);
    const forgotten = cookie.clear(request);
    reply.header("cache-control", "no-store").header("referrer-policy", "no-referrer").header("set-cookie", forgotten);
    try {
      if (begun === undefined || parts.clock.nowMs() > begun.beganMs + attemptMs) {
        throw new OidcRefusal("not_begun", "This browser began no sign-in within the last ten minutes.");
      }
      const person = await oidc.finish(new URL(request.url, "http://callback").search, begun);
      trail.limit(person.subject);
      const { operator, token } = await parts.operators.signIn(person).catch((error: unknown) => {
        if (!(error instanceof ServiceError && error.fields.length > 0)) throw error;
        throw new OidcRefusal("no_name", error.message, person.subject);
      });
      const { id: tokenId, name: actor, role } = operator;
      await trail.began(request, { actor, role, tokenId }, "OpenID", person.subject);
      return reply.header("set-cookie", sessions.begin(request, token).cookie).redirect(begun.page, 303);
    } catch (error) {
      if (error instanceof OidcRefusal) return refuse(request, reply, error);
      throw error;
    }
  });
}

/** A page of the console itself: a link cannot lead anywhere else. */
function pageOfConsole(page = "/console"): string {
  const here = "http://console";
  if (!URL.canParse(page, here)) return "/console";
  const { origin, pathname, search } = new URL(page, here);
  return origin === here && /^\/console(?:\/|$)/.test(pathname) ? pathname + search : "/console";
}
