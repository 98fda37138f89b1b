import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { fastify } from "fastify";

/** The API reference as files in a separate folder, each also in compressed form. */
export interface DocsFiles {
  readonly root: string;
  /** The page's content security policy. */
  readonly policy: string;
  remove(): Promise<void>;
}

const scriptPath = "/docs/js/scalar.js";

/** Writes the files at the first request. The library that makes them contains a script of 4.4 MB as a string. */
export async function writeDocs(openApi: string): Promise<DocsFiles> {
  const root = await mkdtemp(join(tmpdir(), "paybell-docs-"));
  const { html, script } = await makePage();
  await Promise.all([
    writeCompressed(join(root, "openapi.json"), openApi),
    writeCompressed(join(root, "index.html"), html),
    writeCompressed(join(root, "scalar.js"), script),
  ]);
  return {
    root,
    policy: contentSecurityPolicy(html),
    remove: () => rm(root, { recursive: true, force: true }),
  };
}

/** A higher brotli quality takes ten times as long for a tenth less. */
const brotliQuality = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };

async function writeCompressed(path: string, text: string): Promise<void> {
  await Promise.all([
    writeFile(path, text),
    promisify(brotliCompress)(text, brotliQuality).then((bytes) => writeFile(`${path}.br`, bytes)),
    promisify(gzip)(text).then((bytes) => writeFile(`${path}.gz`, bytes)),
  ]);
}

async function makePage(): Promise<{ readonly html: string; readonly script: string }> {
  const { default: reference } = await import("@scalar/fastify-api-reference");
  const page = fastify();
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
  try {
    const [html, script] = [await page.inject("/docs/"), await page.inject(scriptPath)];
    return { html: html.payload, script: script.payload };
  } finally {
    await page.close();
  }
}

/**
 * The page's script comes from this server. The policy makes the browser load nothing from elsewhere, whatever a later
 * version of the page tries.
 */
function contentSecurityPolicy(html: string): string {
  const inline = scriptsOf(html).map((code) => `'sha256-${createHash("sha256").update(code).digest("base64")}'`);
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

/** The code of each script that is written in the page itself. */
function scriptsOf(html: string): string[] {
  return html
    .split("</script>")
    .slice(0, -1)
    .map((part) => part.slice(part.indexOf(">", part.indexOf("<script")) + 1))
    .filter((code) => code.trim() !== "");
}
