import { constants } from "node:fs";
import {
  access,
  appendFile,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  truncate,
  writeFile,
} from "node:fs/promises";
import { extname, join } from "node:path";
import { redactItem } from "../../commands/reports/check-completion.ts";
import { safeFieldName } from "../../guards/safe-text.ts";
import { copyWithoutCardData, csvCutter, jsonCutter, withoutCardValue } from "../card-data.ts";
import { orMissing } from "../folder-watch.ts";
import type { ItemResult } from "../report-items.ts";
import { type Entry, lineBytesMax } from "./read-file.ts";

/** The folders inside the one that a switch writes to. */
const folders = ["reading", "done", "failed"] as const;

/** The durable progress in a file. The next reader skips so many entries. */
interface Progress {
  /** The size of the file when its reading began; once it was read, of what was read. */
  readonly bytes: number;
  readonly modifiedMs: number;
  readonly entries: number;
  readonly accepted: number;
  readonly duplicate: number;
  readonly conflict: number;
  readonly refused: number;
  /** The length of the report that belongs to these entries. */
  readonly reportBytes: number;
  /** Once it was read. */
  readonly end?: FileEnd;
}

/** The folder and the name that a file gets. */
export interface FileEnd {
  readonly folder: "done" | "failed";
  readonly name: string;
  /** Why it could not be read to its end; empty if it could. */
  readonly reason: string;
}

/**
 * The reading of one file: its progress and its report, in `reading/`, and its way to `done/` or `failed/`. Each step
 * can be cut off by kill -9, and is then taken again.
 */
export class FileProgress {
  readonly name: string;
  readonly #folder: string;
  #progress: Progress;

  private constructor(folder: string, name: string, progress: Progress) {
    this.#folder = folder;
    this.name = name;
    this.#progress = progress;
  }

  /** Begins to read a file, or goes on where an earlier process stopped. @returns undefined if there is no such file */
  static async of(folder: string, name: string): Promise<FileProgress | undefined> {
    const found = await stat(join(folder, name)).catch(orMissing);
    const kept = await readProgress(progressPath(folder, name));
    // It may have been moved already.
    if (kept?.end !== undefined) return new FileProgress(folder, name, kept);
    if (found === undefined) {
      await rm(progressPath(folder, name), { force: true });
      return undefined;
    }
    // One that cannot be opened holds back no other: its reading has not begun.
    await (await open(join(folder, name))).close();
    const { size: bytes, mtimeMs: modifiedMs } = found;
    const fresh = { bytes, modifiedMs, entries: 0, accepted: 0, duplicate: 0, conflict: 0, refused: 0, reportBytes: 0 };
    const progress = kept !== undefined && isUnchanged(kept, found) ? kept : fresh;
    const report = reportPath(folder, name);
    await appendFile(report, "");
    // Lines that an earlier process did not count are written again.
    await truncate(report, progress.reportBytes);
    return new FileProgress(folder, name, progress);
  }

  get path(): string {
    return join(this.#folder, this.name);
  }

  get progress(): Progress {
    return this.#progress;
  }

  /** Keeps the results of the next entries: first what the report says of them, then how far it was read. */
  async keep(entries: readonly Entry[], results: readonly ItemResult[]): Promise<void> {
    const lines = results.flatMap((result, index) => reportLine(result, entries[index]?.line ?? 0));
    const reportBytes = await this.#report(lines);
    const count = (of: ItemResult["result"]) =>
      this.#progress[of] + results.filter(({ result }) => result === of).length;
    await this.#save({
      entries: this.#progress.entries + entries.length,
      accepted: count("accepted"),
      duplicate: count("duplicate"),
      conflict: count("conflict"),
      refused: count("refused"),
      reportBytes,
    });
  }

  /** Whether the file is still the one that was begun. Its sender should have renamed it once it was complete. */
  async isUnchanged(): Promise<boolean> {
    return isUnchanged(this.#progress, await stat(this.path));
  }

  /** The last line of the report says how many entries had which result, and why the rest was not read. */
  async complete(folder: FileEnd["folder"], reason: string): Promise<FileEnd> {
    const { entries, accepted, duplicate, conflict, refused } = this.#progress;
    const counts = { entries, accepted, duplicate, conflict, refused };
    const sum = { file: safeFieldName(this.name), ...counts, ...(reason !== "" && { reason }) };
    const reportBytes = await this.#report([sum]);
    const end = { folder, reason, name: await freeName(join(this.#folder, folder), this.name) };
    // By its size and time the file is known when it is moved, also one that has grown. Once it was read to its end,
    // another one may have come in its place.
    const { size: bytes, mtimeMs: modifiedMs } = await stat(this.path);
    await this.#save({ end, reportBytes, ...(folder === "failed" && { bytes, modifiedMs }) });
    return end;
  }

  /** Moves the file to where it ends, with its report beside it. What was not accepted may hold card data. */
  async moveTo({ folder, name }: FileEnd): Promise<void> {
    const target = join(this.#folder, folder, name);
    // An operator empties it, perhaps by removing it.
    await mkdir(join(this.#folder, folder), { recursive: true });
    await rename(reportPath(this.#folder, this.name), reportBeside(target)).catch(orMissing);
    const isThere = async () => {
      const found = await stat(this.path).catch(orMissing);
      return found !== undefined && isUnchanged(this.#progress, found);
    };
    const { refused, conflict } = this.#progress;
    const copy = join(this.#folder, "reading", `${this.name}.copy`);
    const mayHoldCardData = folder === "failed" || refused > 0 || conflict > 0;
    const isCut = mayHoldCardData && (await isThere()) && (await this.#copyTo(copy));
    // Another file of the name may have come since, also while this one was copied.
    if (await isThere()) {
      if (isCut) await rename(copy, target);
      await (isCut ? rm(this.path) : rename(this.path, target));
    }
    await rm(copy, { force: true });
    await rm(progressPath(this.#folder, this.name), { force: true });
  }

  /** @returns whether anything was cut out */
  async #copyTo(copy: string): Promise<boolean> {
    const keepOf = (column: string) => (value: string) => withoutCardValue(column, value);
    const cutter = extname(this.name) === ".csv" ? csvCutter({ delimiter: ",", headerLine: 1, keepOf }) : jsonCutter;
    return (await copyWithoutCardData(this.path, copy, { cutter, lineBytesMax })).isCut;
  }

  /** Appends durably. @returns the length of the report then */
  async #report(lines: readonly object[]): Promise<number> {
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    await appendFile(reportPath(this.#folder, this.name), text, { flush: true });
    return this.#progress.reportBytes + Buffer.byteLength(text);
  }

  async #save(change: Partial<Progress>): Promise<void> {
    const progress = { ...this.#progress, ...change };
    const path = progressPath(this.#folder, this.name);
    await writeFile(`${path}.new`, JSON.stringify(progress), { flush: true });
    await rename(`${path}.new`, path);
    this.#progress = progress;
  }
}

const readAndWrite = constants.R_OK | constants.W_OK;

/** Makes nothing. @throws the file system's error if there is no such folder, or nothing can be made in it */
export async function requireUsable(folder: string): Promise<void> {
  await access(folder, readAndWrite);
  for (const name of folders) {
    await access(`${join(folder, name)}/`, readAndWrite).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
    });
  }
}

/** @throws as {@link requireUsable} */
export async function makeFolders(folder: string): Promise<void> {
  await requireUsable(folder);
  for (const name of folders) await mkdir(join(folder, name), { recursive: true });
}

/** The files whose reading was begun, and has not ended. */
export async function begunIn(folder: string): Promise<readonly string[]> {
  const found = await readdir(join(folder, "reading"));
  return found.filter((name) => name.endsWith(progressEnding)).map((name) => name.slice(0, -progressEnding.length));
}

export function reportBeside(path: string): string {
  return `${path}.report.jsonl`;
}

const progressEnding = ".progress.json";

function progressPath(folder: string, name: string): string {
  return join(folder, "reading", `${name}${progressEnding}`);
}

function reportPath(folder: string, name: string): string {
  return reportBeside(join(folder, "reading", name));
}

async function readProgress(path: string): Promise<Progress | undefined> {
  const text = await readFile(path, "utf8").catch(orMissing);
  return text === undefined ? undefined : (JSON.parse(text) as Progress);
}

function isUnchanged({ bytes, modifiedMs }: Progress, found: { readonly size: number; readonly mtimeMs: number }) {
  return bytes === found.size && modifiedMs === found.mtimeMs;
}

/** Accepted items and duplicates need nobody, and are only counted. A caller's text is shown without card numbers. */
function reportLine({ externalId, result, problem }: ItemResult, line: number): object[] {
  if (problem === undefined) return [];
  const errors = problem.fields.map(({ field, code, message }) => ({ field, code, message }));
  const { code, message: detail } = problem;
  return [{ line, externalId: redactItem(externalId), result, code, detail, ...(errors.length > 0 && { errors }) }];
}

/** A file of the same name may have been read before. */
async function freeName(folder: string, name: string): Promise<string> {
  for (let number = 1; ; number += 1) {
    const candidate = number === 1 ? name : name.replace(/(\.\w+)$/, `.${number}$1`);
    const taken = [candidate, reportBeside(candidate)].map((one) => stat(join(folder, one)).catch(orMissing));
    if ((await Promise.all(taken)).every((one) => one === undefined)) return candidate;
  }
}
