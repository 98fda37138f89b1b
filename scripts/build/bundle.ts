import { relative } from "node:path";
import { rolldown } from "rolldown";

/**
 * The code below `dist` that `entries` need, by path: a file for each entry and one for what several share, so that
 * what is not imported is not loaded. Comments, spaces and long local names go; exported names and properties stay.
 */
export async function bundle(dist: string, entries: readonly string[]): Promise<Map<string, string>> {
  const input = Object.fromEntries(entries.map((path) => [relative(dist, path).replace(/\.js$/, ""), path]));
  const bundled = await rolldown({ input, external: (id) => !/^[./]/.test(id), platform: "neutral" });
  const { output } = await bundled.generate({
    entryFileNames: "[name].js",
    chunkFileNames: "shared/[name].js",
    minify: { compress: { target: "es2023" }, mangle: true, codegen: { removeWhitespace: true } },
  });
  await bundled.close();
  return new Map(
    output.map((chunk) => {
      if (chunk.type !== "chunk") throw new Error(`${chunk.fileName} is no code`);
      return [`${dist}/${chunk.fileName}`, chunk.code];
    }),
  );
}
