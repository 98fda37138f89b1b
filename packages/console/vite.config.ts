import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, gzip } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** Also writes each asset compressed, so that the service can send it unchanged. */
function compressed(): Plugin {
  let assets = "";
  return {
    name: "compressed",
    apply: "build",
    configResolved: ({ root, build }) => {
      assets = join(root, build.outDir, build.assetsDir);
    },
    closeBundle: async () => {
      const names = (await readdir(assets)).filter((name) => /\.(?:js|css|svg)$/.test(name));
      await Promise.all(
        names.map(async (name) => {
          const bytes = await readFile(join(assets, name));
          await writeFile(join(assets, `${name}.br`), await promisify(brotliCompress)(bytes));
          await writeFile(join(assets, `${name}.gz`), await promisify(gzip)(bytes));
        }),
      );
    },
  };
}

const service = process.env["PAYBELL_URL"] ?? "http://127.0.0.1:7420";

export default defineConfig({
  root: import.meta.dirname,
  base: "/console/",
  plugins: [react(), compressed()],
  resolve: { conditions: ["paybell-source", "module", "browser", "development|production"] },
  // The service puts a nonce of its own in for each answer.
  html: { cspNonce: "%PAYBELL_NONCE%" },
  build: {
    target: "es2023",
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1_000,
    license: { fileName: "THIRD-PARTY-LICENSES.md" },
  },
  server: { proxy: { "/console/session": service, "/operator": service, "/v1": service, "/openapi.json": service } },
});
