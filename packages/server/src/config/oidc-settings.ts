import { type Kind, listOf, oneOf, text, url } from "./kind.ts";
import { optional, setting } from "./setting.ts";

const role = oneOf(["viewer", "operator", "admin"]);

/** Its role is after the last "=": a value may hold others, as the distinguished name of a group does. */
const roleOfValue: Kind<string> = {
  description: "value=role",
  read: (pair) => (pair.lastIndexOf("=") > 0 && role.read(pair.slice(pair.lastIndexOf("=") + 1)) ? pair : undefined),
};

/** Sign-in of operators to the console by an OpenID provider. */
export const oidcSettings = {
  oidcIssuer: optional({
    name: "PAYBELL_OIDC_ISSUER",
    kind: url("https:", "http:"),
    meaning:
      "OpenID provider at which operators sign in to the console, such as https://login.example/realms/staff. Not " +
      "set: operators sign in with a token only.",
  }),
  oidcClientId: optional({
    name: "PAYBELL_OIDC_CLIENT_ID",
    kind: text,
    meaning: "The console's client id at the provider; required with PAYBELL_OIDC_ISSUER.",
  }),
  oidcClientSecret: optional({
    name: "PAYBELL_OIDC_CLIENT_SECRET",
    kind: text,
    meaning: "The client's secret; required with PAYBELL_OIDC_ISSUER.",
    secret: true,
  }),
  consoleUrl: optional({
    name: "PAYBELL_CONSOLE_URL",
    kind: url("https:", "http:"),
    meaning:
      "Origin at which operators' browsers reach the console, such as https://paybell-ops.example; required with " +
      "PAYBELL_OIDC_ISSUER. The redirect URI to register at the provider is this and /console/sign-in/callback. " +
      "Alerts link to the runbook there.",
  }),
  consoleSignIn: setting({
    name: "PAYBELL_CONSOLE_SIGN_IN",
    kind: oneOf(["any", "oidc"]),
    default: "any" as const,
    meaning:
      "How operators sign in to the console: `oidc` refuses their tokens there, `any` takes both. Tokens still call " +
      "the operator API, and partners sign in with their API key.",
  }),
  oidcScopes: setting({
    name: "PAYBELL_OIDC_SCOPES",
    kind: listOf(text, "scopes", 20),
    default: ["openid", "profile"],
    meaning: "Scopes that are asked for; `openid` must be among them.",
  }),
  oidcNameClaim: setting({
    name: "PAYBELL_OIDC_NAME_CLAIM",
    kind: text,
    default: "name",
    meaning: "Claim that names the operator in the console and in the audit.",
  }),
  oidcRoleClaim: setting({
    name: "PAYBELL_OIDC_ROLE_CLAIM",
    kind: text,
    default: "roles",
    meaning: "Claim that holds roles or groups, as a string or a list; `a.b` is the member b of the claim a.",
  }),
  oidcRoles: setting({
    name: "PAYBELL_OIDC_ROLES",
    kind: listOf(roleOfValue, `pairs value=role, each role ${role.description}`, 100),
    default: ["viewer=viewer", "operator=operator", "admin=admin"],
    meaning:
      "Which value of the claim gives which role, such as payments-admins=admin, support=viewer. The highest role " +
      "counts; without any, the sign-in is refused.",
  }),
};
