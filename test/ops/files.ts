import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

export const repository = join(import.meta.dirname, "../..");
/** The files for a deployment. */
export const ops = join(repository, "ops");
export const run = promisify(execFile);
