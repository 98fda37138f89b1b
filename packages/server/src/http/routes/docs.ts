import { createHash } from "node:crypto";
import reference from "@scalar/fastify-api-reference";
import type { FastifyInstance } from "fastify";
import { openApiText } from "../openapi.ts";

/** /openapi.json, /docs and, for now, / */
export function docsRoutes(app: FastifyInstance): void {
  let document: string | undefined;
  app.get("/openapi.json", { schema: { hide: true } }, async (_, reply) => {
    document ??= openApiText(app);
    return reply.type("application/json").send(document);
  });
  app.get("/", { schema: { hide: true } }, async (_, reply) => reply.redirect("/docs/"));
  app.register((docs, _, done) => {
    const policies = new Map<string, string>();
    docs.addHook("onSend", async (_, reply, payload) => {
      if (typeof payload !== "string" || !String(reply.getHeader("content-type")).startsWith("text/html"))
        return payload;
      const policy = policies.get(payload) ?? contentSecurityPolicy(payload);
      policies.clear();
      policies.set(payload, policy);
      reply.header("content-security-policy", policy);
      return payload;
    });
    docs.register(reference, {
      routePrefix: "/docs",
      configuration: {
        url: "/openapi.json",
        pageTitle: "Paybell API",
        withDefaultFonts: false,
        telemetry: false,
        hideClientButton: true,
        showDeveloperTools: "never",
        mcp: { disabled: true },
        agent: { disabled: true },
      },
    });
    done();
  });
}

/**
 * The page's script comes from this server. The policy has the browser hold it to that: it loads and asks nothing from
 * elsewhere, whatever a later version of the page would like to.
 */
function contentSecurityPolicy(html: string): string {
  const inline = [...html.matchAll(/<script\b[^>]*>([\s\S]*?)<\/script>/g)].flatMap(([, code = ""]) =>
    code.trim() === "" ? [] : [`'sha256-${createHash("sha256").update(code).digest("base64")}'`],
  );
  return [
    "default-src 'none'",
    `script-src 'self' ${inline.join(" ")}`.trim(),
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
