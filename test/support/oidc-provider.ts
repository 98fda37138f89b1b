import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { decodeJwt, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import Provider from "oidc-provider";

/** A test's OpenID provider, at which one person is always signed in. */
export interface TestProvider {
  readonly issuer: string;
  /** The signed-in user. */
  person: { readonly sub: string; readonly name?: string; readonly roles?: readonly string[] };
  /** Whether the user consents to the sign-in. */
  agrees: boolean;
  /** Claims of the ID token that differ from the truth. */
  wrong: JWTPayload;
  /** Claims of the userinfo endpoint that differ from the truth. */
  wrongUserInfo: JWTPayload;
  /** Whether its signature is by a key that the provider does not publish. */
  forged: boolean;
  close(): Promise<void>;
}

export const oidcClientId = "paybell-console";
export const oidcClientSecret = "secret-of-a-test";

/** @param callbackUrl where it may lead back to */
export async function startOidcProvider(callbackUrl: string): Promise<TestProvider> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // Another site than the console's 127.0.0.1, as in life: browsers treat the way back as begun elsewhere.
  const issuer = `http://localhost:${(server.address() as AddressInfo).port}`;
  const [own, other] = await Promise.all([0, 1].map(() => generateKeyPair("RS256", { extractable: true })));
  if (own === undefined || other === undefined) throw new Error("no keys");
  const kid = "of-a-test";
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...(await exportJWK(own.privateKey)), kid, alg: "RS256", use: "sig" }] },
    clients: [{ client_id: oidcClientId, client_secret: oidcClientSecret, redirect_uris: [callbackUrl] }],
    claims: { openid: ["sub"], profile: ["name", "roles"] },
    cookies: { keys: ["of a test"] },
    features: { devInteractions: { enabled: false } },
    pkce: { required: () => true },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    findAccount: (_, accountId) => ({ accountId, claims: async () => ({ ...it.person, sub: accountId }) }),
  });
  const it: TestProvider = {
    issuer,
    person: { sub: "ada", name: "Ada", roles: ["admin"] },
    agrees: true,
    wrong: {},
    wrongUserInfo: {},
    forged: false,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  provider.use(async (context, next) => {
    if (context.path.startsWith("/interaction/")) {
      // A browser has a page to send, so that another site begins the way back to the console.
      if (context.method === "GET" && context.accepts("json", "html") === "html") {
        context.body = '<!doctype html><form method="post"><button>Continue</button></form>';
        return;
      }
      const { params } = await provider.interactionDetails(context.req, context.res);
      if (!it.agrees) {
        const result = { error: "access_denied", error_description: "not today" };
        return provider.interactionFinished(context.req, context.res, result);
      }
      const accountId = it.person.sub;
      const grant = new provider.Grant({ accountId, clientId: String(params["client_id"]) });
      grant.addOIDCScope(String(params["scope"]));
      const result = { login: { accountId, remember: false }, consent: { grantId: await grant.save() } };
      return provider.interactionFinished(context.req, context.res, result);
    }
    await next();
    if (context.path === "/me") context.body = { ...(context.body as object), ...it.wrongUserInfo };
    const body = context.body as { id_token?: string } | undefined;
    if (context.path !== "/token" || body?.id_token === undefined) return;
    const signer = new SignJWT({ ...decodeJwt(body.id_token), ...it.wrong }).setProtectedHeader({ alg: "RS256", kid });
    context.body = { ...body, id_token: await signer.sign((it.forged ? other : own).privateKey) };
  });
  server.on("request", provider.callback());
  return it;
}
