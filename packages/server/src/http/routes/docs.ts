import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Config } from "../../config.ts";
import type { HttpListener } from "../caller.ts";
import { staticFiles } from "../static-files.ts";

/** `scripts/pages.js` says it of its build: an id of the content, and the hashes of the scripts inside the pages. */
interface Build {
  readonly id: string;
  readonly scripts: readonly string[];
}

/** Names of files here hold their hashes: another content has another name. */
const assetsKeptMs = 365 * 86_400_000;

/**
 * /openapi.json, the guides at /docs/ and the API reference at /docs/api: on the listener of partners without what is
 * for operators. Nothing of them where the operator turned them off.
 */
export function docsRoutes(app: FastifyInstance, { docs }: Pick<Config, "docs">, listener: HttpListener): void {
  if (docs === "off") return;
  const built = builtGuides();
  const readers = listener === "partners" ? "partners" : "operators";
  // The files are compressed on disk and sent in chunks: a client that does not read holds a chunk, not a file. A
  // package's files all have one date, so neither it nor a tag made of it tells two versions apart.
  const root = [join(built, readers), join(built, "shared")];
  staticFiles(app, { serve: false, root, etag: false, lastModified: false });
  const send = async (request: FastifyRequest, reply: FastifyReply, name: string) => {
    const build = await readBuild(built);
    if (build === undefined)
      return reply.code(503).header("retry-after", 30).type("text/plain; charset=utf-8").send(notBuilt);
    const etag = `W/"${build.id}"`;
    reply.headers({ "content-security-policy": policyWith(build.scripts), etag, "referrer-policy": "same-origin" });
    if (name.startsWith("assets/")) return reply.sendFile(name, { maxAge: assetsKeptMs, immutable: true });
    reply.header("cache-control", "no-cache");
    if (request.headers["if-none-match"]?.includes(etag) === true) return reply.code(304).send();
    return reply.sendFile(name, { cacheControl: false });
  };
  const schema = { hide: true };
  const openApi = listener === "partners" ? "partner/openapi.json" : "reference/openapi.json";
  app.get("/openapi.json", { schema }, (request, reply) => send(request, reply, openApi));
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

/** Published, they are in the package of the server; in the repository where they are built. */
function builtGuides(): string {
  const published = join(import.meta.dirname, "../../guides");
  return existsSync(published) ? published : join(import.meta.dirname, "../../../../../docs/.vitepress/dist");
}

const notBuilt =
  "The guides are not built yet. After the first `npm start` this takes half a minute: load this page again. " +
  '"npm run guides" builds them in the repository.\n';

/** Read each time: the guides may be built while the service runs. */
async function readBuild(directory: string): Promise<Build | undefined> {
  try {
    return JSON.parse(await readFile(join(directory, "build.json"), "utf8")) as Build;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Scripts come from this server; a browser loads nothing from elsewhere, whatever a later version of a page tries. */
function policyWith(scripts: readonly string[]): string {
  return [
    "default-src 'none'",
    `script-src 'self' ${scripts.join(" ")}`,
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "worker-src 'self' blob:",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join("; ");
}
