import type * as OpenIdClient from "openid-client";
import type { Config } from "../config/config.ts";
import { messageOf } from "../errors.ts";
import { mayAs, type Role, roles, type SignedInPerson } from "./operators.ts";

type OidcConfig = Pick<
  Config,
  | "oidcIssuer"
  | "oidcClientId"
  | "oidcClientSecret"
  | "consoleUrl"
  | "oidcScopes"
  | "oidcNameClaim"
  | "oidcRoleClaim"
  | "oidcRoles"
>;

export const callbackPath = "/console/sign-in/callback";
const timeoutS = 10;
/** By how much the provider's clock may differ. */
const toleranceS = 30;

/** The browser's state while its operator is at the provider. */
export interface OidcAttempt {
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
}

/**
 * `not_begun`: the browser brings no attempt of ours. `cancelled`: the provider did not let the person in.
 * `not_verified`: its answer is not to be trusted. `no_role`, `no_name`: the claims lack one. `unreachable`: it could
 * not be asked.
 */
export type OidcRefusalReason = "not_begun" | "cancelled" | "not_verified" | "no_role" | "no_name" | "unreachable";

/** Never holds a code or a token. */
export class OidcRefusal extends Error {
  override readonly name = "OidcRefusal";
  readonly reason: OidcRefusalReason;
  /** The verified subject, if there is one. */
  readonly subject: string | undefined;

  constructor(reason: OidcRefusalReason, message: string, subject?: string) {
    super(message);
    this.reason = reason;
    this.subject = subject;
  }
}

type OidcSettings = { readonly [Key in keyof OidcConfig]: NonNullable<OidcConfig[Key]> };

interface Opened {
  readonly library: typeof OpenIdClient;
  readonly provider: OpenIdClient.Configuration;
}

/**
 * Sign-in by an OpenID provider: the authorization code flow with PKCE, state and nonce. The first sign-in loads the
 * library.
 */
export class OidcSignIn {
  readonly #config: OidcSettings;
  readonly #fetch: typeof fetch;
  #client: Promise<Opened> | undefined;

  private constructor(config: OidcSettings, fetchBy: typeof fetch) {
    this.#config = config;
    this.#fetch = fetchBy;
  }

  /** Undefined where no provider is configured. */
  static of(config: OidcConfig, fetchBy: typeof fetch = fetch): OidcSignIn | undefined {
    const { oidcIssuer, oidcClientId, oidcClientSecret, consoleUrl } = config;
    if (oidcIssuer === null || oidcClientId === null || oidcClientSecret === null || consoleUrl === null) {
      return undefined;
    }
    return new OidcSignIn({ ...config, oidcIssuer, oidcClientId, oidcClientSecret, consoleUrl }, fetchBy);
  }

  /** @throws OidcRefusal `unreachable` */
  async begin(): Promise<{ readonly url: string; readonly attempt: OidcAttempt }> {
    const { library, provider } = await this.#open();
    const attempt = {
      state: library.randomState(),
      nonce: library.randomNonce(),
      codeVerifier: library.randomPKCECodeVerifier(),
    };
    const url = library.buildAuthorizationUrl(provider, {
      redirect_uri: new URL(callbackPath, this.#config.consoleUrl).href,
      scope: this.#config.oidcScopes.join(" "),
      state: attempt.state,
      nonce: attempt.nonce,
      code_challenge: await library.calculatePKCECodeChallenge(attempt.codeVerifier),
      code_challenge_method: "S256",
    });
    return { url: url.href, attempt };
  }

  /**
   * Exchanges the code for an ID token, and verifies its signature, issuer, audience, time and nonce.
   *
   * @param query of the callback, as the browser brought it
   * @throws OidcRefusal
   */
  async finish(query: string, attempt: OidcAttempt): Promise<SignedInPerson> {
    const { library, provider } = await this.#open();
    const { state, nonce, codeVerifier } = attempt;
    try {
      const callback = new URL(`${callbackPath}${query}`, this.#config.consoleUrl);
      const tokens = await library.authorizationCodeGrant(provider, callback, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: codeVerifier,
        idTokenExpected: true,
      });
      const ofToken = tokens.claims();
      if (ofToken === undefined) throw new OidcRefusal("not_verified", "The provider sent no ID token.");
      const claims = { ...(await this.#userInfo(tokens.access_token, ofToken)), ...ofToken };
      return this.#personOf(`${ofToken.iss} ${ofToken.sub}`, claims);
    } catch (error) {
      throw refusalOf(error, library);
    }
  }

  /** Claims that the ID token lacks: many providers keep it short. */
  async #userInfo(accessToken: string, ofToken: OpenIdClient.IDToken): Promise<object> {
    const { library, provider } = await this.#open();
    const { oidcNameClaim, oidcRoleClaim } = this.#config;
    const isComplete = [oidcNameClaim, oidcRoleClaim].every((claim) => valueAt(ofToken, claim) !== undefined);
    if (isComplete || provider.serverMetadata().userinfo_endpoint === undefined) return {};
    return library.fetchUserInfo(provider, accessToken, ofToken.sub);
  }

  #personOf(subject: string, claims: object): SignedInPerson {
    const { oidcNameClaim, oidcRoleClaim } = this.#config;
    const name = valueAt(claims, oidcNameClaim);
    if (typeof name !== "string") {
      throw new OidcRefusal("no_name", `The claim ${oidcNameClaim} does not hold a name.`, subject);
    }
    const found = [valueAt(claims, oidcRoleClaim)].flat();
    const role = this.#config.oidcRoles
      .map((pair) => ({ value: pair.slice(0, pair.lastIndexOf("=")), role: pair.slice(pair.lastIndexOf("=") + 1) }))
      .filter(({ value }) => found.includes(value))
      .map((pair) => pair.role as Role)
      .reduce<Role | undefined>((best, each) => (best !== undefined && mayAs(best, each) ? best : each), undefined);
    if (role === undefined) {
      throw new OidcRefusal("no_role", `The claim ${oidcRoleClaim} gives none of ${roles.join(", ")}.`, subject);
    }
    return { subject, name, role };
  }

  /** A provider that could not be read is asked again by the next sign-in. */
  #open(): Promise<Opened> {
    this.#client ??= this.#discover().catch((error: unknown) => {
      this.#client = undefined;
      throw new OidcRefusal("unreachable", `The provider cannot be read: ${reasonOf(error)}`);
    });
    return this.#client;
  }

  async #discover(): Promise<Opened> {
    const { oidcIssuer, oidcClientId, oidcClientSecret } = this.#config;
    const library = await import("openid-client");
    const [basic, post] = [library.ClientSecretBasic(oidcClientSecret), library.ClientSecretPost(oidcClientSecret)];
    const authenticate: OpenIdClient.ClientAuth = (server, ...rest) => {
      const known = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
      (known.includes("client_secret_basic") ? basic : post)(server, ...rest);
    };
    const issuer = new URL(oidcIssuer);
    const metadata = { [library.clockTolerance]: toleranceS };
    const provider = await library.discovery(issuer, oidcClientId, metadata, authenticate, {
      timeout: timeoutS,
      [library.customFetch]: (url, request) => this.#fetch(url, request as RequestInit),
      // The library's name for verifying the ID token's signature although it came over TLS.
      execute: [
        library.enableNonRepudiationChecks,
        // The configuration takes http:// of this machine alone.
        ...(issuer.protocol === "http:" ? [library.allowInsecureRequests] : []),
      ],
    });
    return { library, provider };
  }
}

function refusalOf(error: unknown, library: typeof OpenIdClient): OidcRefusal {
  if (error instanceof OidcRefusal) return error;
  if (error instanceof library.AuthorizationResponseError) {
    return new OidcRefusal("cancelled", `The provider answered ${printable(error.error)}.`);
  }
  const isOfNetwork = error instanceof TypeError && error.message === "fetch failed";
  const code = (error as { readonly code?: unknown }).code;
  if (isOfNetwork || code === "OAUTH_TIMEOUT") {
    return new OidcRefusal("unreachable", `The provider cannot be asked: ${reasonOf(error)}`);
  }
  return new OidcRefusal("not_verified", `The provider's answer was refused: ${reasonOf(error)}`);
}

/** The messages of the library and what caused them; its claims and tokens are in neither. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return printable(cause instanceof Error ? `${message}: ${messageOf(cause)}` : message);
}

function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, "?").slice(0, 300);
}

/** The claim of this name, or a member of a claim, as in `realm_access.roles`. */
function valueAt(claims: object, name: string): unknown {
  const held = claims as Readonly<Record<string, unknown>>;
  if (Object.hasOwn(held, name)) return held[name];
  return name.split(".").reduce<unknown>((value, member) => {
    const isObject = typeof value === "object" && value !== null && Object.hasOwn(value, member);
    return isObject ? (value as Readonly<Record<string, unknown>>)[member] : undefined;
  }, claims);
}
