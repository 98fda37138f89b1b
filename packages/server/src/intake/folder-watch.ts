import { setTimeout as pause } from "node:timers/promises";
import { safeFieldName } from "../guards/safe-text.ts";
import type { Log } from "../telemetry/log.ts";

/** Assigns each file to one instance, which takes it. `store` implements it. */
export interface FileLocks {
  /** @returns undefined while another instance holds it */
  hold(name: string): Promise<HeldFile | undefined>;
  close(): Promise<void>;
}

export interface HeldFile {
  /** Aborted if the lock is lost: another instance may take the file from now on. */
  readonly lost: AbortSignal;
  release(): Promise<void>;
}

interface FolderWatchParts {
  readonly locks: FileLocks;
  readonly log: Log;
  readonly everyMs: number;
  /** The files after one that another instance has wait for it. */
  readonly inOrder: boolean;
}

/** Thrown by `take`: it took a part of the file, and the files after it wait for the rest. */
export class HalfTaken extends Error {}

/**
 * Looks into a folder regularly, and takes its files one after the other, each by one instance.
 *
 * A file that cannot be taken now is logged, and tried again at the next look; the files after it are taken. Where
 * their order matters, `take` resolves only once the file is durable, or rejects with `HalfTaken`, and so holds back the
 * ones after it.
 */
export abstract class FolderWatch {
  readonly #parts: FolderWatchParts;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(parts: FolderWatchParts) {
    this.#parts = parts;
  }

  /** The files that wait, by their path in the folder, in the order in which they are taken. */
  protected abstract list(): Promise<readonly string[]>;

  /** @param signal aborted when it stops, or when the file is no longer its own: `take` rejects, and leaves the file */
  protected abstract take(file: string, signal: AbortSignal): Promise<void>;

  protected lockOf(file: string): string {
    return file;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Takes no further, and resolves once that is so. The next start continues where it stopped. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.#parts.locks.close();
  }

  async #run(): Promise<void> {
    const { log, everyMs } = this.#parts;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#look().catch((error: unknown) => {
        if (!signal.aborted) log.warn({ err: error }, "a folder could not be read; it is tried again");
      });
      await pause(everyMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async #look(): Promise<void> {
    const { locks, log, inOrder } = this.#parts;
    const { signal } = this.#stopping;
    for (const file of await this.list()) {
      if (signal.aborted) return;
      const held = await locks.hold(this.lockOf(file));
      if (held === undefined && inOrder) return;
      if (held === undefined) continue;
      try {
        await this.take(file, AbortSignal.any([signal, held.lost]));
      } catch (error) {
        if (signal.aborted) return;
        log.warn({ err: error, file: safeFieldName(file) }, "a file could not be read; it is tried again");
        if (error instanceof HalfTaken) return;
      } finally {
        await held.release();
      }
    }
  }
}

/** Whether a file is complete: hidden names, and those of files that are still being written, are left alone. */
export function isComplete({ name }: { readonly name: string }): boolean {
  return !name.startsWith(".") && !name.endsWith(".part");
}

/** For a file that may be missing. @throws any other error */
export function orMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
