import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import fastifyStatic, { type FastifyStaticOptions } from "@fastify/static";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Config } from "../../config/config.ts";
import { type ErrorCode, ServiceError } from "../../errors.ts";
import type { HttpListener } from "../request-guards.ts";

/** Names of assets hold their hashes: another content has another name. */
const assetsKeptMs = 365 * 86_400_000;
const schema = { hide: true };

const noncePlace = /%PAYBELL_NONCE%/g;
const oidcPlace = "%PAYBELL_OIDC%";
const consoleNotBuilt =
  'The console is not built here. Run "npm run console" in the repository, and load this page again.\n';

/**
 * /console: one page with client-side routing, and its assets. `/` redirects there.
 *
 * @param oidc whether the page shows the way to the OpenID provider, and nothing else
 */
export function consolePageRoutes(
  app: FastifyInstance,
  { oidc }: { readonly oidc: "none" | "offered" | "only" },
): void {
  const built = builtAt("console", join(import.meta.dirname, "../../../../console/dist"));
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
  app.get("/", { schema }, async (_, reply) => reply.redirect("/console"));
  for (const path of ["/console", "/console/*"]) {
    app.get(path, { schema }, async (_, reply) => {
      const page = await readIfBuilt(index);
      if (page === undefined) return reply.code(503).type("text/plain; charset=utf-8").send(consoleNotBuilt);
      const nonce = randomBytes(16).toString("base64");
      // The nonce is for the theme's style element.
      const policy = policyWith("script-src 'self'", `style-src 'self' 'nonce-${nonce}'`, "font-src 'self'");
      return reply
        .headers({ "content-security-policy": policy, "referrer-policy": "same-origin", "cache-control": "no-store" })
        .type("text/html; charset=utf-8")
        .send(page.replace(noncePlace, nonce).replace(oidcPlace, oidc));
    });
  }
}

/** `scripts/pages.js` says it of its build: an id of the content, and the hashes of the scripts inside the pages. */
interface Build {
  readonly id: string;
  readonly scripts: readonly string[];
}

const guidesNotBuilt =
  "The guides are not built yet. After the first `npm start` this takes half a minute: load this page again. " +
  '"npm run guides" builds them in the repository.\n';

const repositoryDocs = join(import.meta.dirname, "../../../../../docs");

/**
 * /openapi.json, the guides at /docs/ and the API reference at /docs/api: on the listener of partners without what is
 * for operators. Nothing of them where the operator turned them off.
 *
 * @param built the folder of the built guides
 */
export function docsRoutes(
  app: FastifyInstance,
  { docs }: Pick<Config, "docs">,
  listener: HttpListener,
  built: string = builtAt("guides", join(repositoryDocs, ".vitepress/dist")),
): void {
  if (docs === "off") return;
  const readers = listener === "partners" ? "partners" : "operators";
  // The files are compressed on disk and sent in chunks: a client that does not read holds a chunk, not a file. A
  // package's files all have one date, so neither it nor a tag made of it tells two versions apart.
  const root = [join(built, readers), join(built, "shared")];
  staticFiles(app, { serve: false, root, etag: false, lastModified: false });
  const send = async (request: FastifyRequest, reply: FastifyReply, name: string) => {
    const text = await readIfBuilt(join(built, "build.json"));
    if (text === undefined)
      return reply.code(503).header("retry-after", 30).type("text/plain; charset=utf-8").send(guidesNotBuilt);
    const { id, scripts } = JSON.parse(text) as Build;
    const etag = `W/"${id}"`;
    const policy = policyWith(
      `script-src 'self' ${scripts.join(" ")}`,
      "style-src 'self' 'unsafe-inline'",
      "font-src 'self' data:",
      "worker-src 'self' blob:",
    );
    reply.headers({ "content-security-policy": policy, etag, "referrer-policy": "same-origin" });
    if (name.startsWith("assets/")) return reply.sendFile(name, { maxAge: assetsKeptMs, immutable: true });
    reply.header("cache-control", "no-cache");
    if (request.headers["if-none-match"]?.includes(etag) === true) return reply.code(304).send();
    return reply.sendFile(name, { cacheControl: false });
  };
  const openApi = listener === "partners" ? "partner/openapi.json" : "reference/openapi.json";
  app.get("/openapi.json", { schema }, async (request, reply) => {
    // In the repository it is there before the guides are built.
    const source = existsSync(join(built, "build.json")) ? undefined : await readIfBuilt(join(repositoryDocs, openApi));
    return source === undefined ? send(request, reply, openApi) : reply.type("application/json").send(source);
  });
  app.get("/docs", { schema }, async (_, reply) => reply.redirect("/docs/"));
  app.get<{ Params: { "*": string } }>("/docs/*", { schema }, (request, reply) =>
    send(request, reply, fileOf(request.params["*"])),
  );
}

/** Addresses of pages have no extension, and that of a folder ends with /. */
function fileOf(path: string): string {
  if (path === "" || path.endsWith("/")) return `${path}index.html`;
  return extname(path) === "" ? `${path}.html` : path;
}

/** Published, pages are in the package of the server; in the repository where they are built. */
function builtAt(published: string, inRepository: string): string {
  const inPackage = join(import.meta.dirname, "../..", published);
  return existsSync(inPackage) ? inPackage : inRepository;
}

/** Read each time: pages may be built while the service runs. */
async function readIfBuilt(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Everything comes from this server: a browser loads nothing from elsewhere, whatever a later page tries. */
function policyWith(...directives: readonly string[]): string {
  return [
    "default-src 'none'",
    ...directives,
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join("; ");
}

/** The plugin's refusals, by our codes. It says 403 of a name that it does not look up, such as a very long one. */
const refusals: Readonly<Record<number, ErrorCode>> = {
  400: "not_found",
  403: "not_found",
  404: "not_found",
  412: "precondition_failed",
  416: "range_not_satisfiable",
};

/** Sends files, each in the compressed form that the client accepts, in this scope; what it refuses is a problem. */
export function staticFiles(scope: FastifyInstance, options: FastifyStaticOptions): void {
  scope.setErrorHandler<Error & Partial<PluginError>>((error, _, reply) => {
    const code = error instanceof ServiceError ? undefined : refusals[error.statusCode ?? 500];
    // Thrown again, it is sent by the handler of the whole service.
    if (code === undefined) throw error;
    const range = error.headers?.["Content-Range"];
    if (range !== undefined) reply.header("content-range", range);
    throw new ServiceError(code, undefined, { cause: error });
  });
  scope.register(fastifyStatic, { ...options, preCompressed: true });
}

interface PluginError {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
}
