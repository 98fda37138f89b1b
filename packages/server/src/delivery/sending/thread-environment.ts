import { getCompileCacheDir } from "node:module";
import { dirname } from "node:path";

/**
 * The environment of a thread: no master key, no database password. It only names the folder of compiled code, if there
 * is one: without it a thread strips the types of everything it loads again, and uses 25 MB for that.
 */
export function threadEnvironment(): Record<string, string> {
  // Node appends a folder of its own version to the configured one.
  const folder = getCompileCacheDir();
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) };
}
