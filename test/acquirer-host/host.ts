import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { classpathOf, keptFor } from "../support/maven.ts";
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
const pom = join(here, "pom.xml");
const buildTimeoutMs = 880_000;

/**
 * Fetches jPOS with Maven and compiles the switch, unless that was done before.
 *
 * @returns the options of the tests of it
 */
export function needsHost(): Needed {
  const needed = needs("jdk", "maven");
  if (needed.skip) return needed;
  const jpos = classpathOf(pom);
  if (jpos === undefined) return orSkip(["jPOS: Maven cannot fetch it here"]);
  compiled(jpos);
  return needed;
}

/** Starts it; {@link needsHost} must have succeeded. */
export async function startHost(options: AcquirerHostOptions = {}): Promise<AcquirerHost> {
  const { port = 0, encoding = "bcd", macKey } = options;
  const classpath = [classes(), classpathOf(pom)].join(":");
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

/** Once on this machine. A compile error is a bug, not a reason to skip a test. */
function compiled(classpath: string): void {
  if (existsSync(classes())) return;
  const own = mkdtempSync(`${classes()}-`);
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

const classes = () => keptFor(sources());

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
