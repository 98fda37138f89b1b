import type { Cleanup } from "./environment.ts";
import { startProcess } from "./processes/channel.ts";
import type { libraryMethods } from "./processes/library.ts";
import { median, type Spread, spread } from "./statistics.ts";

export interface LibraryResult {
  readonly libraryPerS: number;
  readonly barePerS: number;
  readonly ofBare: Spread;
}

/** The partner library's open and verify, in turns with bare node:crypto doing the same. */
export async function measureLibrary(
  cleanup: Cleanup,
  plan: { readonly rounds: number; readonly roundMs: number },
): Promise<LibraryResult> {
  const process = startProcess<ReturnType<typeof libraryMethods>>(new URL("./processes/library.ts", import.meta.url));
  cleanup.add(() => process.stop());
  const durationMs = plan.roundMs / 4;
  await process.ask("round", { durationMs });
  const rounds: { readonly libraryPerS: number; readonly barePerS: number }[] = [];
  for (let round = 0; round < plan.rounds; round += 1) rounds.push(await process.ask("round", { durationMs }));
  await process.stop();
  return {
    libraryPerS: median(rounds.map(({ libraryPerS }) => libraryPerS)),
    barePerS: median(rounds.map(({ barePerS }) => barePerS)),
    ofBare: spread(rounds.map(({ libraryPerS, barePerS }) => libraryPerS / barePerS)),
  };
}
