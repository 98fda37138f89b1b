import { createReadStream } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ServiceError } from "../errors.ts";
import { safeFieldName } from "../guards/safe-text.ts";
import { copyWithoutCardData, csvCutter, fixedCutter, type LineCutter, withMaskedCards } from "../intake/card-data.ts";
import { type FileLocks, FolderWatch, isComplete, orMissing } from "../intake/folder-watch.ts";
import type { NewEvent } from "../telemetry/events.ts";
import type { Log } from "../telemetry/log.ts";
import type { Clearing } from "./clearing.ts";

interface ClearingFolderParts {
  /** Has a folder for each acquirer, by its name; `default` is that of the settings. */
  readonly folder: string;
  readonly clearing: Pick<Clearing, "receive" | "layoutOf">;
  readonly locks: FileLocks;
  /** Awaited: a file that failed is recorded before it is removed. */
  readonly events: { record(event: NewEvent): Promise<void> | void };
  readonly log: Log;
  readonly everyMs?: number;
}

/** The result of a file: its id in the database, or why it cannot be read. */
type Outcome = { readonly id: string } | { readonly reason: string };

/** No record of a clearing file is longer, and a longer line must not hold the event loop while it is searched. */
const lineBytesMax = 8 * 1024;

/**
 * Reads clearing files that are dropped into a folder. What is left of each is a copy without card numbers, in `done/`
 * or `failed/` beside it, with a report.
 *
 * The steps: it is stored in the database, its copy and report are written, it is removed. A process that is killed
 * leaves the file where it was, and it is read again: in the database that changes nothing, and its copy gets the name
 * that it had, because the report has the hash of the file.
 *
 * Lines are matched whichever file comes first, so a file that cannot be read now holds back no other.
 */
export class ClearingFolder extends FolderWatch {
  readonly #parts: ClearingFolderParts;
  /** Files that an older version left as they were dropped, with card numbers. Undefined: not looked for yet. */
  #uncut: Set<string> | undefined;

  constructor(parts: ClearingFolderParts) {
    super({ everyMs: 1_000, inOrder: false, ...parts });
    this.#parts = parts;
  }

  protected async list(): Promise<readonly string[]> {
    const { folder } = this.#parts;
    this.#uncut ??= new Set(await this.#leftUncut());
    const files = [...this.#uncut];
    for (const acquirer of await namesIn(folder, "isDirectory")) {
      const names = await namesIn(join(folder, acquirer), "isFile");
      files.push(...names.map((name) => `${acquirer}/${name}`));
    }
    return files;
  }

  async #leftUncut(): Promise<readonly string[]> {
    const { folder } = this.#parts;
    const found: string[] = [];
    for (const acquirer of await namesIn(folder, "isDirectory")) {
      for (const kept of [join(acquirer, "done"), join(acquirer, "failed")]) {
        const names = (await namesIn(join(folder, kept), "isFile").catch(orMissing)) ?? [];
        for (const name of names.filter((one) => !one.endsWith(reportEnding))) {
          if ((await readReport(join(folder, kept, name))).sha256 === undefined) found.push(join(kept, name));
        }
      }
    }
    return found;
  }

  protected override lockOf(file: string): string {
    return `clearing ${file}`;
  }

  protected async take(file: string, signal: AbortSignal): Promise<void> {
    const { folder, events, log } = this.#parts;
    if (this.#uncut?.has(file)) return await this.#cut(file);
    const [acquirer = "", name = ""] = file.split("/");
    const path = join(folder, file);
    // Another instance may have taken it before the lock was held.
    const before = await stat(path).catch(orMissing);
    if (before === undefined) return;
    const outcome = await this.#receive(acquirer, name, path, signal);
    const copy = join(folder, acquirer, `.${name}.copy`);
    const form = await this.#formOf(acquirer, "id" in outcome);
    const { sha256 } = await copyWithoutCardData(path, copy, { ...form, lineBytesMax });
    const isUnchanged = async () => {
      const now = await stat(path).catch(orMissing);
      return now?.size === before.size && now.mtimeMs === before.mtimeMs;
    };
    if (!(await isUnchanged())) {
      await rm(copy);
      throw new Error("the file was changed while it was read");
    }
    await keepCopy(copy, join(folder, acquirer, "id" in outcome ? "done" : "failed"), name, { ...outcome, sha256 });
    const detail = { acquirer, file: safeFieldName(name), ...outcome };
    if ("reason" in outcome)
      await events.record({ kind: "clearing_file_failed", partnerId: null, subjectId: null, detail });
    // Another file of the name may have come since: it is read next.
    if (await isUnchanged()) await rm(path);
    if ("id" in outcome) log.info(detail, "a clearing file was read");
    else log.warn(detail, "a clearing file could not be read");
  }

  /** Its report gets the hash last: a process that is killed leaves a file that is cut again, which changes nothing. */
  async #cut(file: string): Promise<void> {
    const { folder, events, log } = this.#parts;
    const [acquirer = "", kept = "", name = ""] = file.split("/");
    const path = join(folder, file);
    const report = await readReport(path);
    // Another instance may have done it before the lock was held.
    if (report.sha256 === undefined) {
      const copy = join(folder, acquirer, kept, `.${name}.copy`);
      const form = await this.#formOf(acquirer, kept === "done");
      const { isCut, sha256 } = await copyWithoutCardData(path, copy, { ...form, lineBytesMax });
      await rename(copy, path);
      const detail = { acquirer, file: `${kept}/${safeFieldName(name)}`, isCut };
      await events.record({ kind: "clearing_file_cut", partnerId: null, subjectId: null, detail });
      await writeReport(path, { ...report, sha256 });
      log.info(detail, "a clearing file of an older version was copied without card numbers");
    }
    this.#uncut?.delete(file);
  }

  async #receive(acquirer: string, name: string, path: string, signal: AbortSignal): Promise<Outcome> {
    const bytes = createReadStream(path, { signal });
    try {
      return { id: await this.#parts.clearing.receive(acquirer, safeFieldName(name), bytes) };
    } catch (error) {
      return { reason: badInput(error).message };
    } finally {
      bytes.destroy();
    }
  }

  /** A file that could not be read may have another form than its profile says: nothing in it counts as known. */
  async #formOf(acquirer: string, isRead: boolean): Promise<{ cutter: LineCutter; encoding: "utf8" | "latin1" }> {
    const layout = await this.#parts.clearing.layoutOf(acquirer).catch(badInput);
    const { section } = layout instanceof ServiceError ? {} : layout;
    const encoding = section?.encoding === "latin1" ? "latin1" : "utf8";
    if (section?.format === "csv") {
      const { delimiter, header, skipLines } = section;
      const headerLine = header ? skipLines + 1 : 0;
      return { cutter: csvCutter({ delimiter, headerLine, keepOf: withMaskedCards }), encoding };
    }
    const known = isRead ? Object.values(section?.columns ?? {}) : [];
    return { cutter: fixedCutter(known.filter((place) => typeof place === "object")), encoding };
  }
}

/** @throws any other error: the file is tried again */
function badInput(error: unknown): ServiceError {
  if (error instanceof ServiceError && error.status === 400) return error;
  throw error;
}

/** A file of the same name may have been read before. The same file again, or one that was half kept, replaces itself. */
async function keepCopy(
  copy: string,
  folder: string,
  name: string,
  report: { readonly sha256: string },
): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (let number = 1; ; number += 1) {
    const target = join(folder, number === 1 ? name : `${name}.${number}`);
    const { sha256 } = await readReport(target);
    const isFree = sha256 === undefined && (await stat(target).catch(orMissing)) === undefined;
    if (!isFree && sha256 !== report.sha256) continue;
    await writeReport(target, report);
    return await rename(copy, target);
  }
}

const reportEnding = ".report.json";

type Report = Partial<Outcome> & {
  /** Of the file as it was dropped. Absent: an older version kept it as it was. */
  readonly sha256?: string;
};

/** Empty: there is none, or its process was killed while it wrote it. */
async function readReport(path: string): Promise<Report> {
  const text = await readFile(`${path}${reportEnding}`, "utf8").catch(orMissing);
  try {
    return JSON.parse(text ?? "{}") as Report;
  } catch {
    return {};
  }
}

async function writeReport(path: string, report: Report): Promise<void> {
  await writeFile(`${path}${reportEnding}`, `${JSON.stringify(report)}\n`, { mode: 0o600, flush: true });
}

async function namesIn(folder: string, kind: "isFile" | "isDirectory"): Promise<readonly string[]> {
  const found = await readdir(folder, { withFileTypes: true });
  return found
    .filter((one) => one[kind]() && isComplete(one))
    .map(({ name }) => name)
    .sort();
}
