import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A command that builds the package of `home`, as its ecosystem installs it, into a folder that exists. */
type Pack = (home: string, destination: string, program?: string) => readonly [program: string, ...args: string[]];

/** The wheel. */
export const packPython: Pack = (home, destination, python = "python3") => {
  return [python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", destination, home];
};

/** The module as a proxy on disk serves it: GOPROXY is `file://` and the destination's go-proxy. */
export const packGo: Pack = (home, destination) => {
  return ["go", "run", join(home, "../../scripts/build/module-proxy.go"), home, join(destination, "go-proxy")];
};

/** The archive, as an artifact repository of Composer serves it. */
export const packPhp: Pack = (home, destination) => {
  const quiet = ["--quiet", "--no-interaction"];
  return ["composer", "archive", ...quiet, `--working-dir=${home}`, "--format=zip", `--dir=${destination}`];
};

/** The jar. It has its own POM, by which `mvn install:install-file` knows it. */
export const packJava: Pack = (home, destination) => {
  const options = ["-B", "-q", "-Dmaven.test.skip", `-Djar.folder=${destination}`];
  return ["mvn", ...options, "-f", join(home, "pom.xml"), "package"];
};

/** By folder below `clients`: a command that ends with 0 if this machine can build it, and what that needs. */
const clients: readonly (readonly [folder: string, pack: Pack, needs: string, ...probe: string[]])[] = [
  ["python", packPython, "Python with pip", "python3", "-m", "pip", "--version"],
  ["go", packGo, "Go", "go", "version"],
  ["php", packPhp, "PHP with zip, and Composer", "composer", "--version", "--no-interaction"],
  ["java", packJava, "Maven with a JDK 17 or newer", "mvn", "-version"],
];

/**
 * Packs the clients whose language is on this machine.
 *
 * @returns a line for each that was left out
 */
export async function packClients(root: string, destination: string): Promise<readonly string[]> {
  mkdirSync(destination, { recursive: true });
  const leftOut: string[] = [];
  for (const [folder, pack, needs, program = "", ...args] of clients) {
    const canBuild = await run(program, args).then(
      () => true,
      () => false,
    );
    if (canBuild) {
      const [builder, ...how] = pack(join(root, "clients", folder), destination);
      await run(builder, how);
    } else leftOut.push(`clients/${folder} is left out: it needs ${needs}`);
  }
  return leftOut;
}
