import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { staticFiles } from "../static-files.ts";

/** Its assets' names hold their hashes: another content has another name. */
const assetsKeptMs = 365 * 86_400_000;
const noncePlace = /%PAYBELL_NONCE%/g;
const oidcPlace = "%PAYBELL_OIDC%";

/**
 * /console: one page with client-side routing, and its assets. `/` redirects there.
 *
 * @param oidc whether the page shows the way to the OpenID provider, and nothing else
 */
export function consolePageRoutes(
  app: FastifyInstance,
  { oidc }: { readonly oidc: "none" | "offered" | "only" },
): void {
  const built = builtPages();
  const index = join(built, "index.html");
  app.register((scope, _, done) => {
    staticFiles(scope, {
      root: join(built, "assets"),
      prefix: "/console/assets/",
      immutable: true,
      maxAge: assetsKeptMs,
      decorateReply: false,
      schemaHide: true,
    });
    done();
  });
  const schema = { hide: true };
  app.get("/", { schema }, async (_, reply) => reply.redirect("/console"));
  for (const path of ["/console", "/console/*"]) {
    app.get(path, { schema }, async (_, reply) => {
      const page = await readPage(index);
      if (page === undefined) return reply.code(503).type("text/plain; charset=utf-8").send(notBuilt);
      const nonce = randomBytes(16).toString("base64");
      return reply
        .headers({
          "content-security-policy": policyWith(nonce),
          "referrer-policy": "same-origin",
          "cache-control": "no-store",
        })
        .type("text/html; charset=utf-8")
        .send(page.replace(noncePlace, nonce).replace(oidcPlace, oidc));
    });
  }
}

/** Published, they lie in the package of the server; in the repository where they are built. */
function builtPages(): string {
  const published = join(import.meta.dirname, "../../console");
  return existsSync(published) ? published : join(import.meta.dirname, "../../../../console/dist");
}

const notBuilt = 'The console is not built here. Run "npm run console" in the repository, and load this page again.\n';

/** Read each time: the console may be built while the service runs. */
async function readPage(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Scripts and content come from this server only; the nonce is for the theme's style element. */
function policyWith(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join("; ");
}
