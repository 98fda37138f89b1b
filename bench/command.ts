import { rm } from "node:fs/promises";

/**
 * Runs steps last in, first out, each only once. A failed step does not prevent the others, and a step added after the
 * run began, by a start that was in progress, runs at once.
 */
export class Cleanup {
  readonly #steps: (() => Promise<unknown> | unknown)[] = [];
  readonly #folders: string[] = [];
  #began = false;

  add(step: () => Promise<unknown> | unknown): void {
    this.#steps.push(step);
    if (this.#began) void this.run();
  }

  /** Removed at the end of every run: what was still starting may have made it again. */
  addFolder(path: string): void {
    this.#folders.push(path);
  }

  async run(): Promise<void> {
    this.#began = true;
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      await Promise.resolve(step()).catch(() => undefined);
    }
    for (const path of this.#folders) await rm(path, { recursive: true, force: true }).catch(() => undefined);
  }
}

/** A start that Ctrl-C came into ends first: nobody else would stop what it began. */
const startEndsWithinMs = 15_000;

/** Options that are not understood. */
export class UsageError extends TypeError {
  override readonly name = "UsageError";
}

export function wholeNumber<Otherwise>(
  option: string,
  text: string | undefined,
  otherwise: Otherwise,
  least: 0 | 1 = 1,
): number | Otherwise {
  if (text === undefined) return otherwise;
  if (/^\d{1,15}$/.test(text) && Number(text) >= least) return Number(text);
  throw new UsageError(`${option} must be a whole number${least === 0 ? "" : " above zero"}; found ${text}`);
}

/** Some of the known names, separated by commas. */
export function namesOf<Name extends string>(option: string, text: string, known: readonly Name[]): readonly Name[] {
  return text.split(",").map((one) => {
    const name = known.find((each) => each === one.trim());
    if (name === undefined) throw new UsageError(`${option} knows ${known.join(", ")}; found ${one}`);
    return name;
  });
}

/** @returns what `run` resolves to; 2 if its options are not understood, and it says how it is called; 1 if it rejects */
export async function exitCodeOf(run: () => Promise<number>, usage = ""): Promise<number> {
  try {
    return await run();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    const isUsage = error instanceof UsageError || code.startsWith("ERR_PARSE_ARGS");
    if (isUsage) process.stderr.write(`${(error as Error).message}\n${usage}`);
    else process.stderr.write(`${error instanceof Error ? error.stack : error}\n`);
    return isUsage ? 2 : 1;
  }
}

/**
 * Runs a command until it ends or a signal stops it, and cleans up.
 *
 * @returns its exit code: as `exitCodeOf`, 130 after a signal
 */
export async function runCommand(run: (cleanup: Cleanup) => Promise<number>, usage = ""): Promise<number> {
  const cleanup = new Cleanup();
  const interrupted = Promise.withResolvers<130>();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => interrupted.resolve(130));
  const running = exitCodeOf(() => run(cleanup), usage);
  const code = await Promise.race([running, interrupted.promise]);
  await cleanup.run();
  if (code === 130) {
    await Promise.race([running, new Promise((resolve) => setTimeout(resolve, startEndsWithinMs))]);
    await cleanup.run();
  }
  return code;
}
