import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { cliReference } from "./generate/cli.ts";
import { commandLineApi, consoleApi, partnerApi } from "./generate/client.ts";
import { clientContracts, vectorsReference } from "./generate/clients.ts";
import type { GeneratedFile, Generator } from "./generate/document.ts";
import { codesReference, fieldsReference, headersReference } from "./generate/ipn.ts";
import { openApiReference } from "./generate/openapi.ts";
import {
  certifyReference,
  errorsReference,
  metricsReference,
  partnerSettingFlags,
  settingsReference,
  testCardsReference,
} from "./generate/service.ts";
import { signingReference } from "./generate/signing.ts";
import { statesReference } from "./generate/states.ts";

/** Everything in the repository that the code writes. Add a generator here: it is then written and checked. */
export const generators: readonly Generator[] = [
  fieldsReference,
  codesReference,
  headersReference,
  signingReference,
  errorsReference,
  settingsReference,
  metricsReference,
  testCardsReference,
  certifyReference,
  statesReference,
  vectorsReference,
  openApiReference,
  partnerApi,
  consoleApi,
  commandLineApi,
  partnerSettingFlags,
  cliReference,
  clientContracts,
];

export async function generate(): Promise<GeneratedFile[]> {
  return (await Promise.all(generators.map(async (generator) => generator()))).flat();
}

/** The paths of the files below `root` that are missing or hold something else. */
export function outdated(root: string, files: readonly GeneratedFile[]): string[] {
  return files.filter(({ path, text }) => readOrEmpty(join(root, path)) !== text).map(({ path }) => path);
}

export function write(root: string, files: readonly GeneratedFile[]): void {
  for (const { path, text } of files) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}

// `node --conditions=paybell-source scripts/generate.ts` writes the files; with --check it only compares them.
if (import.meta.main) {
  const root = join(import.meta.dirname, "..");
  const files = await generate();
  const stale = outdated(root, files);
  if (!process.argv.includes("--check")) {
    write(root, files);
    process.stdout.write(`generate: ${files.length} files, ${stale.length} changed\n`);
  } else if (stale.length > 0) {
    const command = "node --conditions=paybell-source scripts/generate.ts";
    process.stderr.write(`generate: not what the code writes: ${stale.join(", ")}. Run ${command}\n`);
    process.exitCode = 1;
  } else {
    process.stdout.write(`generate: ${files.length} files are what the code writes\n`);
  }
}
