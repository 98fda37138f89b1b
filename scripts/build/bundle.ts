import { relative } from "node:path";
import { type OutputOptions, type Plugin, rolldown } from "rolldown";
import { dts } from "rolldown-plugin-dts";
import { shortDeclaration } from "./shorten.ts";

/**
 * The code below `dist` that `entries` need, by path: a file for each entry and one for what several share, so that
 * what is not imported is not loaded. Comments, spaces and long local names go; exported names and properties stay.
 */
export function bundleCode(dist: string, entries: readonly string[]): Promise<Map<string, string>> {
  return bundle(dist, entries, {
    entryFileNames: "[name].js",
    chunkFileNames: "shared/[name].js",
    minify: { compress: { target: "es2023" }, mangle: true, codegen: { removeWhitespace: true } },
  });
}

/**
 * The same for types: `entries` are the .d.ts files that TypeScript emitted. Types that cannot be imported are left
 * out.
 */
export async function bundleTypes(dist: string, entries: readonly string[]): Promise<Map<string, string>> {
  // TypeScript has emitted the declarations: the plugin's generator has nothing to do, and "oxc" installs nothing.
  const plugins = dts({ dtsInput: true, emitDtsOnly: true, tsconfig: false, generator: "oxc" });
  const names = { entryFileNames: "[name].ts", chunkFileNames: "shared/[name].ts", minifyInternalExports: false };
  const types = await bundle(dist, entries, names, plugins);
  return new Map([...types].map(([path, text]) => [path, `${shortDeclaration(text)}\n`]));
}

// Warnings about slow plugins are not needed here.
const checks = { bundlerTimings: false };

async function bundle(
  dist: string,
  entries: readonly string[],
  options: OutputOptions,
  plugins: Plugin[] = [],
): Promise<Map<string, string>> {
  const input = Object.fromEntries(entries.map((path) => [relative(dist, path).replace(/\.[jt]s$/, ""), path]));
  const bundled = await rolldown({ input, external: (id) => !/^[./]/.test(id), platform: "neutral", plugins, checks });
  const { output } = await bundled.generate(options);
  await bundled.close();
  return new Map(
    output.map((chunk) => {
      if (chunk.type !== "chunk") throw new Error(`${chunk.fileName} is no code`);
      return [`${dist}/${chunk.fileName}`, chunk.code];
    }),
  );
}
