import { existsSync, readFileSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join, posix } from "node:path";
import { type DefaultTheme, defineConfig, type MarkdownRenderer } from "vitepress";

/** The site of partners has no page that is for operators; the site of operators has both. */
const isForPartners = process.env["PAYBELL_READERS"] === "partners";

const docs = join(import.meta.dirname, "..");
const { version } = JSON.parse(readFileSync(join(docs, "../package.json"), "utf8")) as { readonly version: string };

/** Pages, and folders with their /, that only who works on the code reads. */
const internalPages = ["decisions/", "internals/"];
const operatorPages = [
  "operator/",
  "reliability.md",
  "scaling.md",
  "security.md",
  "reference/iso8583.md",
  "reference/metrics.md",
  "reference/openapi.json",
  "reference/settings.md",
];
const excluded = isForPartners ? [...internalPages, ...operatorPages] : internalPages;
const excludedSections = isForPartners ? ["Internals", "For the operator"] : ["Internals"];
const isShown = (path: string) =>
  !path.startsWith("../") && existsSync(join(docs, path)) && !excluded.some((one) => path.startsWith(one));

/** The contents page, which the sidebar follows. */
const contents = forReaders(readFileSync(join(docs, "README.md"), "utf8"));

/** A page without the sections that are for others. */
function forReaders(text: string): string {
  const [head, ...sections] = text.split(/^(?=## )/m);
  const shown = sections.filter((one) => !excludedSections.some((name) => one.startsWith(`## ${name}\n`)));
  return [head, ...shown].join("");
}

function sidebar(): DefaultTheme.SidebarItem[] {
  return contents
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const pages = new Set(
        [...section.matchAll(/\]\(([\w/.-]+\.md)\)/g)].map(([, path = ""]) => path).filter(isShown),
      );
      return {
        text: section.slice(0, section.indexOf("\n")),
        collapsed: false,
        items: [...pages].map((path) => ({ text: titleOf(path), link: `/${path.replace(/\.md$/, "")}` })),
      };
    });
}

function titleOf(path: string): string {
  const [, title = path] = /^# (.+)$/m.exec(readFileSync(join(docs, path), "utf8")) ?? [];
  return title.replaceAll("`", "");
}

/** The anchor that a forge gives to a heading, so that a link leads to the same place here and there. */
function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-");
}

/** Files beside the pages that the service serves, or that a page links to, by their path in `docs`. */
const files = new Set([isForPartners ? "partner/openapi.json" : "reference/openapi.json"]);

/** The pages that have another path on the site. */
const rewrites: Record<string, string> = { "README.md": "index.md" };

/** The address that a link leads to; undefined for what this site does not have. */
function placeOf(link: string, folder: string): string | undefined {
  const [path = "", anchor] = link.split("#");
  if (path === "" || /^[a-z]+:/.test(path)) return link;
  const target = posix.join(folder, path);
  if (!isShown(target)) return undefined;
  if (!path.endsWith(".md")) files.add(target);
  return `/${rewrites[target] ?? target}${anchor === undefined ? "" : `#${anchor}`}`;
}

/** A link to what this site does not have, such as a source file, becomes its words. */
function links(md: MarkdownRenderer): void {
  md.core.ruler.push("links", ({ tokens, env }) => {
    const folder = posix.dirname((env as { readonly relativePath: string }).relativePath);
    let isGone = false;
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      if (token.type === "link_open") {
        const place = placeOf(token.attrGet("href") ?? "", folder);
        isGone = place === undefined;
        if (place !== undefined) token.attrSet("href", place);
        // With a target, VitePress does not look for a page there.
        if (place !== undefined && files.has(place.slice(1))) token.attrSet("target", "_self");
      }
      if (isGone && token.type.startsWith("link_")) token.type = "text";
    }
  });
}

/**
 * An anchor for each row of a table that begins with a code, such as an error, a case of certify, or a command without its
 * arguments: `paybell partner show [partner]` is #paybell-partner-show.
 */
function anchors(md: MarkdownRenderer): void {
  md.core.ruler.push("anchors", ({ tokens }) => {
    const used = new Set(tokens.map((token) => token.attrGet("id")));
    for (const [at, token] of tokens.entries()) {
      if (token.type !== "td_open" || tokens[at - 1]?.type !== "tr_open") continue;
      const [first] = tokens[at + 1]?.children ?? [];
      const name = first?.type === "code_inline" ? first.content.replace(/ [[<].*$/, "").replaceAll(" ", "-") : "";
      if (!/^[\w.-]+$/.test(name) || used.has(name)) continue;
      token.attrSet("id", name);
      used.add(name);
    }
  });
}

/** The search finds sections by their headings. A row that has an anchor is one, too. */
function searchable(html: string): string {
  return html.replaceAll(
    /<td id="([^"]+)">(.*?)<\/td>/g,
    (_, name: string, text: string) => `<h4 id="${name}">${text} <a href="#${name}"></a></h4><td>${text}</td>`,
  );
}

/** A tag in a text is a placeholder, such as <id>: Vue would take it for a component that never ends. */
function plainTags(md: MarkdownRenderer): void {
  md.core.ruler.push("plain-tags", ({ tokens }) => {
    for (const token of tokens.flatMap((one) => [one, ...(one.children ?? [])])) {
      if (token.type.startsWith("html_") && /^<(?!!--)/.test(token.content)) token.type = "text";
    }
  });
}

export default defineConfig({
  title: "Paybell",
  description: "Card payment commands, and signed, encrypted notifications that are never lost",
  lang: "en",
  base: "/docs/",
  outDir: join(import.meta.dirname, "dist", isForPartners ? "partners" : "operators"),
  srcExclude: excluded.map((one) => one.replace(/\/$/, "/**")),
  rewrites,
  cleanUrls: true,
  // A page loads what it shows, and nothing more.
  router: { prefetchLinks: false },
  markdown: { config: (md) => void md.use(links).use(anchors).use(plainTags), anchor: { slugify: slugOf } },
  buildEnd: async ({ outDir }) => {
    await Promise.all([...files].map((path) => cp(join(docs, path), join(outDir, path), { recursive: true })));
  },
  vite: {
    build: { chunkSizeWarningLimit: 10_000, license: { fileName: "THIRD-PARTY-LICENSES.md" } },
    plugins: [
      {
        name: "for-readers",
        enforce: "pre",
        transform: (text, id) => (id.endsWith(".md") ? forReaders(text) : undefined),
      },
    ],
  },
  themeConfig: {
    search: {
      provider: "local",
      options: { _render: (text, env, md) => searchable(md.render(forReaders(text), env)) },
    },
    outline: [2, 3],
    nav: [
      { text: "Partners", link: "/partner/tutorial" },
      ...(isForPartners ? [] : [{ text: "Operators", link: "/operator/production" }]),
      { text: "API", link: "/api", target: "_self" },
      { text: version, link: "/reference/specification#9-versions" },
    ],
    sidebar: sidebar(),
  },
});
