import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { type Needed, needs, orSkip, pathOf } from "../support/programs.ts";

/** The small switch on jPOS that plays the acquirer's host. */
export interface AcquirerHost {
  readonly port: number;
  /** Gives it an order, such as `break` or `totals 1`, and waits until it is executed. @returns its answer */
  order(order: string): Promise<readonly string[]>;
  stop(): Promise<void>;
}

export interface AcquirerHostOptions {
  /** Default: any free port. */
  readonly port?: number;
  readonly encoding?: "bcd" | "ascii" | "ebcdic" | "bcd93" | "ascii93";
  /** In hexadecimal: messages carry a MAC of ANSI X9.19. */
  readonly macKey?: string;
}

const here = import.meta.dirname;
const target = join(here, "target");
const classpathFile = join(target, "classpath");
const plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath";
const buildTimeoutMs = 880_000;

/**
 * Fetches jPOS with Maven and compiles the switch, unless that was done before.
 *
 * @returns the options of the tests of it
 */
export function needsHost(): Needed {
  const needed = needs("jdk", "maven");
  if (needed.skip) return needed;
  mkdirSync(target, { recursive: true });
  if (!fetched()) return orSkip(["jPOS: Maven cannot fetch it here"]);
  compiled();
  return needed;
}

/** Starts it; {@link needsHost} must have succeeded. */
export async function startHost(options: AcquirerHostOptions = {}): Promise<AcquirerHost> {
  const { port = 0, encoding = "bcd", macKey } = options;
  const classpath = [classes(), readFileSync(classpathFile, "utf8").trim()].join(":");
  // It runs only briefly: less compilation is faster than faster code.
  const java = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx128m", "-cp", classpath, "Host"];
  const child = spawn(
    join(dirname(pathOf("jdk")), "java"),
    [...java, port.toString(), encoding, ...(macKey === undefined ? [] : [macKey])],
    {
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  const lines = linesOf(child);
  const ready = (await lines.until((line) => line.startsWith("ready "))).at(-1) ?? "";
  return {
    port: Number(ready.slice("ready ".length)),
    async order(order) {
      const said = lines.until((line) => line === `done ${order}`);
      child.stdin?.write(`${order}\n`);
      return (await said).slice(0, -1);
    },
    async stop() {
      const ended = new Promise((resolve) => child.once("close", resolve));
      child.stdin?.end("quit\n");
      await ended;
    },
  };
}

/** Several processes may prepare at once: each makes its own copy, and moves it into place in one step. */
function fetched(): boolean {
  const known = existsSync(classpathFile) ? readFileSync(classpathFile, "utf8").trim() : "";
  if (known !== "" && known.split(":").every((jar) => existsSync(jar))) return true;
  const own = `${classpathFile}-${process.pid}`;
  const maven = ["-B", "-q", "-f", join(here, "pom.xml"), plugin, `-Dmdep.outputFile=${own}`];
  const { status } = spawnSync(pathOf("maven"), maven, { encoding: "utf8", timeout: buildTimeoutMs });
  if (status !== 0) return false;
  renameSync(own, classpathFile);
  return true;
}

/** A compile error is a bug, not a reason to skip a test. */
function compiled(): void {
  if (existsSync(classes())) return;
  const own = mkdtempSync(join(target, "compiling-"));
  const classpath = readFileSync(classpathFile, "utf8").trim();
  const javac = ["-Xlint:all", "-Werror", "-d", own, "-cp", classpath, ...sources()];
  const { status, stderr } = spawnSync(pathOf("jdk"), javac, { encoding: "utf8", timeout: buildTimeoutMs });
  if (status !== 0) throw new Error(`the acquirer's host does not compile:\n${stderr}`);
  try {
    renameSync(own, classes());
  } catch {
    // Another process was first.
    rmSync(own, { recursive: true });
  }
}

function sources(): string[] {
  return readdirSync(join(here, "src")).map((name) => join(here, "src", name));
}

/** Another folder for other sources. */
function classes(): string {
  const hash = createHash("sha256");
  for (const source of sources()) hash.update(readFileSync(source));
  return join(target, `classes-${hash.digest("hex").slice(0, 16)}`);
}

/** The lines that a process writes, for one reader after another. */
function linesOf(child: ChildProcess) {
  if (child.stdout === null) throw new Error("The host has no output.");
  const waiting: { readonly take: (line: string) => void; readonly fail: (error: Error) => void }[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => waiting[0]?.take(line));
  child.once("close", (code) => {
    for (const { fail } of waiting.splice(0)) fail(new Error(`The host ended with ${code}.`));
  });
  return {
    /** Every line up to the first that is `last`. */
    until(last: (line: string) => boolean): Promise<string[]> {
      const { promise, resolve, reject } = Promise.withResolvers<string[]>();
      const seen: string[] = [];
      const take = (line: string) => {
        seen.push(line);
        if (!last(line)) return;
        waiting.shift();
        resolve(seen);
      };
      waiting.push({ take, fail: reject });
      return promise;
    },
  };
}
