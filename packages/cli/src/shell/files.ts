import { existsSync, fsyncSync, ftruncateSync, rmSync, writeSync } from "node:fs";
import { type FileHandle, open, readFile, rename } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { parseJson } from "@paybell/contract";
import type { CommandContext } from "./context.ts";
import { Failure } from "./failure.ts";
import type { Result } from "./output.ts";

/**
 * Reads a file named by the user.
 *
 * @param code of the failure
 * @throws Failure saying why it cannot be read
 */
export async function readNamedFile(context: Pick<CommandContext, "workingDirectory">, path: string, code: string) {
  return readFile(resolve(context.workingDirectory, path), "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new Failure(`${path} cannot be read: ${whyUnreadable(error)}.`, { code });
  });
}

/** What a text of JSON says; undefined if it is not JSON. */
export function jsonIn(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  ENOTDIR: "there is no such file",
  EISDIR: "it is a folder",
  EACCES: "you have no right to",
};

export function whyUnreadable({ code = "", message }: NodeJS.ErrnoException): string {
  return reasons[code] ?? (code === "" ? message : code);
}

/** More than any answer with keys. It is written as spaces, which may follow JSON. */
const reservedBytes = 64 * 1024;

/**
 * Writes the result of `make` to a new file that only its owner can read (mode 0600). The file and its space are on
 * disk before `make` is called, so that keys shown only once are not lost to a folder that cannot be written, or to a
 * full disk. If `make` fails, or is interrupted, the file is removed.
 *
 * @param written what the file has of the result; default all of it
 * @throws Failure if it exists already, or cannot be written
 */
export async function writePrivateFile<Value extends object>(
  { workingDirectory, signal }: Pick<CommandContext, "workingDirectory" | "signal">,
  path: string,
  make: () => Promise<Value>,
  written: (value: Value) => object = (value) => value,
): Promise<Value> {
  const place = resolve(workingDirectory, path);
  const file = await create(place, path);
  const remove = removing(place, signal);
  try {
    await file.write(Buffer.alloc(reservedBytes, " "), 0, reservedBytes, 0).catch((error: unknown) => {
      throw unwritable(path, error);
    });
    await file.sync();
    await syncFolderOf(place);
    const value = await make();
    remove.cancel();
    overwrite(file.fd, `${JSON.stringify(written(value), null, 2)}\n`);
    return value;
  } catch (error) {
    remove.now();
    throw error;
  } finally {
    await file.close();
  }
}

interface Making<Made extends object> {
  make(): Promise<Made>;
  /** The values that are printed only if they are in no file. */
  readonly secrets: readonly (keyof Made & string)[];
  /** @param place where the secrets are: they themselves, or the file */
  lines(made: Made, place: readonly string[]): readonly string[];
  /** What the file has of it; absent: all of it. */
  written?(made: Made): object;
}

/** Makes something whose secrets are shown only once: in the new file `out`, or in the output. */
export async function makeSecret<Made extends object>(
  context: Pick<CommandContext, "workingDirectory" | "signal">,
  out: string | undefined,
  { make, secrets, lines, written }: Making<Made>,
): Promise<Result> {
  if (out === undefined) {
    const made = await make();
    const shown = secrets.flatMap((name) => (made[name] === undefined ? [] : [String(made[name])]));
    return { value: made, lines: lines(made, shown.length === 0 ? [] : [...shown, "Keep it: it is shown only once."]) };
  }
  const made = await writePrivateFile(context, out, make, written);
  const rest = Object.entries(made).filter(([name]) => !secrets.some((secret) => secret === name));
  return {
    value: { ...Object.fromEntries(rest), file: out },
    lines: lines(made, [`It is in ${out}, and nowhere else.`]),
  };
}

/** At once, so that no interruption comes between. */
function overwrite(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  writeSync(fd, bytes, 0, bytes.length, 0);
  ftruncateSync(fd, bytes.length);
  fsyncSync(fd);
}

/**
 * Writes a stream to a new file that only its owner can read. The file has its name only once all of it is on disk.
 *
 * @returns the number of lines
 * @throws Failure if it exists already, or cannot be written
 */
export async function streamToPrivateFile(
  { workingDirectory, signal }: Pick<CommandContext, "workingDirectory" | "signal">,
  path: string,
  open: () => Promise<AsyncIterable<Uint8Array>>,
): Promise<number> {
  const place = resolve(workingDirectory, path);
  if (existsSync(place)) throw existsAlready(path);
  const draft = `${place}.partial`;
  const file = await create(draft, `${path}.partial`);
  const remove = removing(draft, signal);
  const refuse = (error: unknown) => {
    throw unwritable(path, error);
  };
  try {
    let lines = 0;
    for await (const bytes of await open()) {
      for (const byte of bytes) if (byte === newline) lines += 1;
      await file.writeFile(bytes).catch(refuse);
    }
    await file.sync().catch(refuse);
    await file.close();
    await rename(draft, place).catch(refuse);
    await syncFolderOf(place);
    return lines;
  } catch (error) {
    await file.close().catch(() => undefined);
    remove.now();
    throw error;
  }
}

const newline = 0x0a;

/** Removes a file unless it is cancelled, also when Ctrl-C ends the process before anything else could. */
function removing(place: string, signal: AbortSignal): { now(): void; cancel(): void } {
  let isCancelled = false;
  const now = () => {
    if (!isCancelled) rmSync(place, { force: true });
  };
  signal.addEventListener("abort", now, { once: true });
  return {
    now,
    cancel() {
      isCancelled = true;
    },
  };
}

/** Until then a new name can be lost. Windows opens no folder, and needs none. */
async function syncFolderOf(place: string): Promise<void> {
  if (process.platform === "win32") return;
  const folder = await open(dirname(place), "r");
  await folder.sync().finally(() => folder.close());
}

async function create(place: string, path: string): Promise<FileHandle> {
  try {
    return await open(place, "wx", 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") throw existsAlready(path);
    throw unwritable(path, error);
  }
}

function unwritable(path: string, error: unknown): Failure {
  const { code, message } = error as NodeJS.ErrnoException;
  return new Failure(`${path} cannot be written: ${code ?? message}.`, { code: "unwritable" });
}

function existsAlready(path: string): Failure {
  return new Failure(`${path} exists already, and may hold what is nowhere else.`, {
    code: "file_exists",
    remedy: "Name another file, or move that one away.",
  });
}
