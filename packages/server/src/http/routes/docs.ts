import { createHash } from "node:crypto";
import { type FastifyInstance, fastify } from "fastify";
import { openApiText } from "../openapi.ts";

/** /openapi.json, /docs and, for now, / */
export function docsRoutes(app: FastifyInstance): void {
  let document: string | undefined;
  app.get("/openapi.json", { schema: { hide: true } }, async (_, reply) => {
    document ??= openApiText(app);
    return reply.type("application/json").send(document);
  });
  app.get("/", { schema: { hide: true } }, async (_, reply) => reply.redirect("/docs/"));
  let page: Promise<FastifyInstance> | undefined;
  for (const path of ["/docs", "/docs/*"]) {
    app.get(path, { schema: { hide: true } }, async (request, reply) => {
      page ??= makePage();
      const { statusCode, headers, rawPayload } = await (await page).inject(request.url);
      return reply.code(statusCode).headers(headers).send(rawPayload);
    });
  }
}

/**
 * The API reference, made when somebody first looks at it: the library holds its script of 4.4 MB, and all that reads
 * OpenAPI documents. Measured: 24 MB of memory.
 */
async function makePage(): Promise<FastifyInstance> {
  const { default: reference } = await import("@scalar/fastify-api-reference");
  const page = fastify();
  const policies = new Map<string, string>();
  page.addHook("onSend", async (_, reply, payload) => {
    if (typeof payload !== "string" || !String(reply.getHeader("content-type")).startsWith("text/html")) return payload;
    const policy = policies.get(payload) ?? contentSecurityPolicy(payload);
    policies.clear();
    policies.set(payload, policy);
    reply.header("content-security-policy", policy);
    return payload;
  });
  page.register(reference, {
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
  await page.ready();
  return page;
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
