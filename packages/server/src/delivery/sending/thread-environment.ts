import { getCompileCacheDir } from "node:module";
import { dirname } from "node:path";

/**
 * The environment of a thread: no master key, no database password. Only where compiled code is kept, when it is:
 * without it a thread strips the types of all it loads once more, and holds 25 MB for that.
 */
export function threadEnvironment(): Record<string, string> {
  // Node adds a folder of its own version to the one it was given.
  const folder = getCompileCacheDir();
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) };
}
