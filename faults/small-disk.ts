import { execFile } from "node:child_process";
import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

const pieceBytes = 1024 * 1024;

/** A file system of its own, small enough to be filled: a tmpfs, which needs the right to mount. */
export class SmallDisk {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** Undefined where this machine does not permit to mount one. */
  static async mount(path: string, megabytes: number): Promise<SmallDisk | undefined> {
    if (process.platform !== "linux" || process.getuid?.() !== 0) return undefined;
    await mkdir(path, { recursive: true, mode: 0o755 });
    try {
      await run("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=755`, "tmpfs", path]);
      return new SmallDisk(path);
    } catch {
      return undefined;
    }
  }

  /** Writes until nothing more fits. */
  async fill(): Promise<void> {
    const file = await open(this.#ballast, "w");
    try {
      for (let bytes = pieceBytes; bytes >= 4_096; bytes /= 4) while (await fits(file, Buffer.alloc(bytes)));
    } finally {
      await file.close();
    }
  }

  async free(): Promise<void> {
    await rm(this.#ballast, { force: true });
  }

  async unmount(): Promise<void> {
    // Lazily: a server that is still ending must not keep it for ever.
    await run("umount", ["-l", this.path]);
  }

  get #ballast(): string {
    return join(this.path, "ballast");
  }
}

async function fits(file: Awaited<ReturnType<typeof open>>, piece: Buffer): Promise<boolean> {
  try {
    await file.write(piece);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOSPC") return false;
    throw error;
  }
}
