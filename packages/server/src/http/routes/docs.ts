import type { FastifyInstance, FastifyReply } from "fastify";
import type { Config } from "../../config.ts";
import { openApiText } from "../openapi.ts";
import { staticFiles } from "../static-files.ts";
import { type DocsFiles, writeDocs } from "./docs-files.ts";

/** A browser uses its copy until then, and revalidates it afterwards. */
const keptByBrowsers = "1 day";

/** /openapi.json and /docs. Nothing of them where the operator turned them off. */
export function docsRoutes(app: FastifyInstance, { docs }: Pick<Config, "docs">): void {
  if (docs === "off") return;
  // The files are compressed on disk and sent in chunks: a client that does not read holds a chunk, not a file.
  staticFiles(app, { serve: false, maxAge: keptByBrowsers });
  let files: Promise<DocsFiles> | undefined;
  const send = async (reply: FastifyReply, name: string) => {
    files ??= writeDocs(openApiText(app)).catch((error: unknown) => {
      files = undefined;
      throw error;
    });
    const { root, policy } = await files;
    return reply.headers({ "content-security-policy": policy }).sendFile(name, root);
  };
  app.addHook("onClose", async () => await (await files)?.remove());
  const schema = { hide: true };
  app.get("/openapi.json", { schema }, (_, reply) => send(reply, "openapi.json"));
  app.get("/docs", { schema }, async (_, reply) => reply.redirect("/docs/"));
  app.get("/docs/", { schema }, (_, reply) => send(reply, "index.html"));
  app.get("/docs/js/scalar.js", { schema }, (_, reply) => send(reply, "scalar.js"));
}
