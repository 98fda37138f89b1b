import { type FileHandle, open, rename, stat } from "node:fs/promises";

/** PostgreSQL's own log, written by the server itself through the descriptor it is started with. */
export interface ServerLog {
  readonly path: string;
  /** The last lines written since `fromByte`; the newest come last. */
  tail(fromByte?: number): Promise<string>;
}

const rotateBytes = 10 * 1024 * 1024;
const tailBytes = 16 * 1024;
const tailLines = 20;

export function serverLog(path: string): ServerLog {
  return { path, tail: (fromByte = 0) => tail(path, fromByte) };
}

/**
 * Opens the log for a new server, readable only by the owner. One larger than 10 MB becomes `<path>.1`: only at a
 * start, because a running server holds its descriptor.
 */
export async function openServerLog(path: string): Promise<{ file: FileHandle; sizeBytes: number }> {
  const size = (await stat(path).catch(() => undefined))?.size ?? 0;
  if (size > rotateBytes) await rename(path, `${path}.1`);
  const file = await open(path, "a", 0o600);
  return { file, sizeBytes: (await file.stat()).size };
}

async function tail(path: string, fromByte: number): Promise<string> {
  const file = await open(path, "r").catch(() => undefined);
  if (file === undefined) return "";
  try {
    const { size } = await file.stat();
    const start = Math.max(size - tailBytes, size < fromByte ? 0 : fromByte);
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(Math.max(0, size - start)), position: start });
    return buffer.toString("utf8", 0, bytesRead).trimEnd().split("\n").slice(-tailLines).join("\n");
  } finally {
    await file.close();
  }
}
