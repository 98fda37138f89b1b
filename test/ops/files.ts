import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

export const repository = join(import.meta.dirname, "../..");
/** The files for a deployment. */
export const ops = join(repository, "ops");
export const run = promisify(execFile);

/** As by the command in the manifests of Kubernetes: the lines of both intakes count. */
export const turnedOn = (text: string) => text.replaceAll(/#(?:files|kafka) /g, "");
