import { readdir } from "node:fs/promises";
import { extname, join } from "node:path";
import { safeFieldName } from "../../guards/safe-text.ts";
import type { NewEvent } from "../../telemetry/events.ts";
import type { Log } from "../../telemetry/log.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { type FileLocks, FolderWatch, HalfTaken, isComplete } from "../folder-watch.ts";
import { type IntakeParts, reportUntilDurable } from "../report-items.ts";
import { begunIn, type FileEnd, FileProgress, reportBeside } from "./progress.ts";
import { type Entry, readers, UnreadableFile } from "./read-file.ts";

interface FileDropParts extends IntakeParts {
  readonly folder: string;
  readonly locks: FileLocks;
  /** Awaited: a file that failed is recorded before it is moved. */
  readonly events: { record(event: NewEvent): Promise<void> | void };
  readonly metrics: Pick<Metrics, "intakeFiles" | "intakeFilesWaiting">;
  readonly log: Log;
  readonly everyMs?: number;
}

/** As many as an HTTP report may have: they are made durable together. */
const entriesPerReport = 1_000;

/**
 * Reads completions from files that a switch puts into a folder. A file is read by one instance at a time, in order of
 * the names, and goes to `done/` or `failed/` with a report. Each entry takes effect once, by its externalId: a file
 * may be dropped again, and a reader killed. While an entry cannot be made durable, the files after it wait: a
 * settlement must not be reported before its Sales.
 */
export class FileDrop extends FolderWatch {
  readonly #parts: FileDropParts;

  /** The folder must have been made ready: `makeFolders`. */
  constructor(parts: FileDropParts) {
    super({ everyMs: 1_000, inOrder: true, ...parts });
    this.#parts = parts;
  }

  protected async list(): Promise<readonly string[]> {
    const { folder, metrics } = this.#parts;
    const found = await readdir(folder, { withFileTypes: true });
    const complete = found.filter(
      (one) => one.isFile() && isComplete(one) && Object.hasOwn(readers, extname(one.name)),
    );
    // Those that were moved away by a process that then ended are among them.
    const names = [...new Set([...complete.map(({ name }) => name), ...(await begunIn(folder))])].sort();
    metrics.intakeFilesWaiting.set(names.length);
    return names;
  }

  protected async take(name: string, signal: AbortSignal): Promise<void> {
    const { folder, metrics, events, log } = this.#parts;
    const reading = await FileProgress.of(folder, name);
    if (reading === undefined) return;
    const end = reading.progress.end ?? (await this.#read(reading, signal).catch(halfTaken));
    const file = safeFieldName(name);
    if (end.folder === "failed") {
      const detail = { file, reason: end.reason, report: reportBeside(join(end.folder, safeFieldName(end.name))) };
      await events.record({ kind: "intake_file_failed", partnerId: null, subjectId: null, detail });
    }
    await reading.moveTo(end);
    const { entries, accepted, duplicate, conflict, refused } = reading.progress;
    metrics.intakeFiles.inc({ result: end.folder });
    log.info({ file, result: end.folder, entries, accepted, duplicate, conflict, refused }, "a file was read");
  }

  /** @throws the signal's reason when it is aborted: what was read so far is kept */
  async #read(reading: FileProgress, signal: AbortSignal): Promise<FileEnd> {
    try {
      await this.#reportEntries(reading, signal);
    } catch (error) {
      if (!(error instanceof UnreadableFile)) throw error;
      return reading.complete("failed", error.message);
    }
    return (await reading.isUnchanged()) ? reading.complete("done", "") : reading.complete("failed", changed);
  }

  async #reportEntries(reading: FileProgress, signal: AbortSignal): Promise<void> {
    const { log } = this.#parts;
    const onTrouble = (error: unknown) =>
      log.warn({ err: error, file: safeFieldName(reading.name) }, "a file waits to be read on");
    let skip = reading.progress.entries;
    let batch: Entry[] = [];
    const flush = async () => {
      if (batch.length === 0) return;
      const results = await reportUntilDurable(batch, this.#parts, { signal, onTrouble });
      await reading.keep(batch, results);
      batch = [];
      signal.throwIfAborted();
    };
    try {
      for await (const entry of readers[extname(reading.name) as Ending](reading.path)) {
        if (skip > 0) skip -= 1;
        else batch.push(entry);
        if (batch.length === entriesPerReport) await flush();
      }
    } catch (error) {
      // Entries before the place that cannot be read are reported all the same.
      if (error instanceof UnreadableFile) await flush();
      throw error;
    }
    await flush();
  }
}

type Ending = keyof typeof readers;

function halfTaken(cause: unknown): never {
  throw new HalfTaken("The files after it wait.", { cause });
}

const changed = "The file was changed while it was read. Write it under a name that ends in .part, then rename it.";
