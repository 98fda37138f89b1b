import { mkdirSync, writeFileSync } from "node:fs";
import { headerVectors, sealingVectors, signingVectors, writtenKeys } from "./vectors/material.ts";
import { refusedVectors } from "./vectors/refused.ts";

export const vectorsFolder: URL = new URL("../vectors/", import.meta.url);

/** Returns every vector file: its name and its content. */
export function vectorFiles(): ReadonlyMap<string, string> {
  return new Map(
    Object.entries({
      "signing.json": { ...writtenKeys, vectors: signingVectors() },
      "sealing.json": { ...writtenKeys, vectors: sealingVectors() },
      "refused.json": { ...writtenKeys, vectors: refusedVectors() },
      "headers.json": { vectors: headerVectors() },
    }).map(([name, content]) => [name, `${JSON.stringify(content, undefined, 2)}\n`]),
  );
}

// Run as `node packages/contract/scripts/vectors.ts`, this writes the files.
if (import.meta.main) {
  mkdirSync(vectorsFolder, { recursive: true });
  for (const [name, text] of vectorFiles()) writeFileSync(new URL(name, vectorsFolder), text);
}
