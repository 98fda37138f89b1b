import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** One package in another language, below `clients`. */
interface Client {
  readonly folder: string;
  /** A command that ends with 0 if this machine can build it. */
  readonly probe: readonly [program: string, ...args: string[]];
  readonly needs: string;
  /** Builds the package of `home` as its ecosystem installs it, into a folder that exists. */
  pack(home: string, destination: string): readonly [program: string, ...args: string[]];
}

/** The command that makes the wheel. */
export function packPython(python: string, home: string, destination: string): readonly [string, ...string[]] {
  return [python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", destination, home];
}

/** The command that writes the module as a proxy on disk serves it: GOPROXY is `file://` and the destination. */
export function packGo(home: string, destination: string): readonly [string, ...string[]] {
  return ["go", "run", join(home, "../../scripts/build/module-proxy.go"), home, destination];
}

/** The command that makes the archive, as an artifact repository of Composer serves it. */
export function packPhp(home: string, destination: string): readonly [string, ...string[]] {
  return [
    "composer",
    "archive",
    "--quiet",
    "--no-interaction",
    `--working-dir=${home}`,
    "--format=zip",
    `--dir=${destination}`,
  ];
}

/** The command that makes the jar. It has its own POM, by which `mvn install:install-file` knows it. */
export function packJava(maven: string, home: string, destination: string): readonly [string, ...string[]] {
  const options = ["-B", "-q", "-Dmaven.test.skip", `-Djar.folder=${destination}`];
  return [maven, ...options, "-f", join(home, "pom.xml"), "package"];
}

const clients: readonly Client[] = [
  {
    folder: "python",
    probe: ["python3", "-m", "pip", "--version"],
    needs: "Python with pip",
    pack: (home, destination) => packPython("python3", home, destination),
  },
  {
    folder: "go",
    probe: ["go", "version"],
    needs: "Go",
    pack: (home, destination) => packGo(home, join(destination, "go-proxy")),
  },
  {
    folder: "php",
    probe: ["composer", "--version", "--no-interaction"],
    needs: "PHP with zip, and Composer",
    pack: (home, destination) => packPhp(home, destination),
  },
  {
    folder: "java",
    probe: ["mvn", "-version"],
    needs: "Maven with a JDK 17 or newer",
    pack: (home, destination) => packJava("mvn", home, destination),
  },
];

/**
 * Packs the clients whose language is on this machine.
 *
 * @returns a line for each that was left out
 */
export async function packClients(root: string, destination: string): Promise<readonly string[]> {
  mkdirSync(destination, { recursive: true });
  const leftOut: string[] = [];
  for (const { folder, probe, needs, pack } of clients) {
    const [program, ...args] = probe;
    const isThere = await run(program, args).then(
      () => true,
      () => false,
    );
    if (!isThere) leftOut.push(`clients/${folder} is left out: it needs ${needs}`);
    const [builder, ...how] = pack(join(root, "clients", folder), destination);
    if (isThere) await run(builder, how);
  }
  return leftOut;
}
