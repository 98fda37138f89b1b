import { createReadStream } from "node:fs";
import { chmod, mkdir, readdir, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { ServiceError } from "../errors.ts";
import type { NewEvent } from "../events.ts";
import type { FileLocks } from "../intake/file-drop/file-drop.ts";
import type { Log } from "../log.ts";
import { safeFieldName } from "../safe-field-name.ts";
import type { Clearing } from "./clearing.ts";

interface ClearingFolderParts {
  /** Has a folder for each acquirer, by its name; `default` is that of the settings. */
  readonly folder: string;
  readonly clearing: Pick<Clearing, "receive">;
  readonly locks: FileLocks;
  /** Awaited: a file that failed is recorded before it is moved. */
  readonly events: { record(event: NewEvent): Promise<void> | void };
  readonly log: Log;
  readonly everyMs?: number;
}

/**
 * Reads clearing files that are dropped into a folder. Each goes to `done/` or `failed/` beside it. A file that was
 * read and not moved is read again, which changes nothing.
 */
export class ClearingFolder {
  readonly #parts: ClearingFolderParts;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(parts: ClearingFolderParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.#parts.locks.close();
  }

  async #run(): Promise<void> {
    const { log, everyMs = 5_000 } = this.#parts;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#look().catch((error: unknown) => {
        if (!signal.aborted) log.warn({ err: error }, "the clearing folder could not be read; it is tried again");
      });
      await pause(everyMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async #look(): Promise<void> {
    const { folder, locks } = this.#parts;
    for (const acquirer of await namesIn(folder, "folder")) {
      for (const name of await namesIn(join(folder, acquirer), "file")) {
        if (this.#stopping.signal.aborted) return;
        const held = await locks.hold(`clearing ${acquirer}/${name}`);
        if (held === undefined) continue;
        try {
          await this.#take(acquirer, name);
        } finally {
          await held.release();
        }
      }
    }
  }

  async #take(acquirer: string, name: string): Promise<void> {
    const { folder, clearing, events, log } = this.#parts;
    const path = join(folder, acquirer, name);
    // Another instance may have moved it before the lock was held.
    if ((await stat(path).catch(() => undefined)) === undefined) return;
    const file = safeFieldName(name);
    try {
      const id = await clearing.receive(acquirer === "default" ? "" : acquirer, file, createReadStream(path));
      await this.#move(acquirer, name, "done", { id });
      log.info({ acquirer, file, id }, "a clearing file was read");
    } catch (error) {
      if (!(error instanceof ServiceError) || error.status !== 400) throw error;
      const detail = { acquirer, file, reason: error.message };
      await events.record({ kind: "clearing_file_failed", partnerId: null, subjectId: null, detail });
      await this.#move(acquirer, name, "failed", { reason: error.message });
      log.warn(detail, "a clearing file could not be read");
    }
  }

  /** The acquirer may have written card numbers into it: only the service's account may read it. */
  async #move(acquirer: string, name: string, to: "done" | "failed", report: object): Promise<void> {
    const folder = join(this.#parts.folder, acquirer, to);
    await mkdir(folder, { recursive: true });
    const path = join(this.#parts.folder, acquirer, name);
    await chmod(path, 0o600);
    await writeFile(join(folder, `${name}.report.json`), `${JSON.stringify(report)}\n`, { mode: 0o600 });
    await rename(path, join(folder, name));
  }
}

/** Hidden names, and those of files that are still being written, are left alone. */
async function namesIn(folder: string, kind: "file" | "folder"): Promise<readonly string[]> {
  const found = await readdir(folder, { withFileTypes: true });
  const wanted = found.filter((one) => (kind === "file" ? one.isFile() : one.isDirectory()));
  return wanted
    .map(({ name }) => name)
    .filter((name) => !name.startsWith(".") && !name.endsWith(".part"))
    .sort();
}
