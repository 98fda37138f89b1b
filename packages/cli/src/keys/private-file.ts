import { access, type FileHandle, open, rename, rm } from "node:fs/promises";
import { resolve } from "node:path";
import type { CommandContext } from "../context.ts";
import { Failure } from "../failure.ts";

/**
 * Writes the result of `make` to a new file that only its owner can read (mode 0600). The file is created before `make`
 * is called, so that keys shown only once are not lost to a folder that cannot be written. If `make` fails, the file is
 * removed.
 *
 * @throws Failure if it exists already, or cannot be written
 */
export async function writePrivateFile<Value extends object>(
  { workingDirectory }: Pick<CommandContext, "workingDirectory">,
  path: string,
  make: () => Promise<Value>,
): Promise<Value> {
  const place = resolve(workingDirectory, path);
  const file = await create(place, path);
  try {
    const value = await make();
    await file.writeFile(`${JSON.stringify(value, null, 2)}\n`);
    await file.sync();
    await file.close();
    return value;
  } catch (error) {
    await file.close().catch(() => undefined);
    await rm(place, { force: true });
    throw error;
  }
}

/**
 * Writes a stream to a new file that only its owner can read. The file has its name only once all of it is on disk.
 *
 * @returns the number of lines
 * @throws Failure if it exists already, or cannot be written
 */
export async function streamToPrivateFile(
  { workingDirectory }: Pick<CommandContext, "workingDirectory">,
  path: string,
  open: () => Promise<AsyncIterable<Uint8Array>>,
): Promise<number> {
  const place = resolve(workingDirectory, path);
  if (
    await access(place).then(
      () => true,
      () => false,
    )
  )
    throw existsAlready(path);
  const draft = `${place}.partial`;
  const file = await create(draft, `${path}.partial`);
  try {
    let lines = 0;
    for await (const bytes of await open()) {
      for (const byte of bytes) if (byte === newline) lines += 1;
      await file.writeFile(bytes);
    }
    await file.sync();
    await file.close();
    await rename(draft, place);
    return lines;
  } catch (error) {
    await file.close().catch(() => undefined);
    await rm(draft, { force: true });
    throw error;
  }
}

const newline = 0x0a;

async function create(place: string, path: string): Promise<FileHandle> {
  try {
    return await open(place, "wx", 0o600);
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") throw existsAlready(path);
    throw new Failure(`${path} cannot be written: ${code === "" ? message : code}.`, { code: "unwritable" });
  }
}

function existsAlready(path: string): Failure {
  return new Failure(`${path} exists already, and may hold what is nowhere else.`, {
    code: "file_exists",
    remedy: "Name another file, or move that one away.",
  });
}
