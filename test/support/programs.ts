import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";

declare module "vitest" {
  interface TaskMeta {
    /** Programs that a skipped test lacks, and how to install them: the end of `npm test` lists both. */
    missing?: readonly string[];
  }
}

/** A program that npm does not bring. */
interface Program {
  readonly title: string;
  readonly command: string;
  /** They make it print its version, and end with 0 only if it has all that the tests use. */
  readonly args: readonly string[];
  readonly atLeast?: readonly [major: number, minor: number];
  /** Parts of it that not every installation has. */
  readonly having?: string;
  /** Commands of the same folder that are used with it. */
  readonly beside?: readonly string[];
  /** The tiers with tests that need it. */
  readonly tiers: readonly string[];
  /** The packages of Debian 12. Undefined if it has none, or one that is too old. */
  readonly debian?: readonly string[];
  /** Elsewhere than from Debian. */
  readonly otherwise?: string;
}

const pythonVersion = "import sys, cryptography, pip; print('Python', sys.version.split()[0])";
const phpVersion =
  "class_exists('ZipArchive') && (@include 'Nyholm/Psr7/autoload.php') !== false || exit(1); echo 'PHP ', PHP_VERSION;";

const programs = {
  bash: { title: "bash", command: "bash", args: ["--version"], tiers: ["systems"], debian: ["bash"] },
  zsh: { title: "zsh", command: "zsh", args: ["--version"], tiers: ["systems"], debian: ["zsh"] },
  fish: { title: "fish", command: "fish", args: ["--version"], tiers: ["systems"], debian: ["fish"] },
  script: { title: "script", command: "script", args: ["--version"], tiers: ["systems"], debian: ["bsdutils"] },
  nginx: { title: "nginx", command: "nginx", args: ["-v"], tiers: ["systems"], debian: ["nginx"] },
  caddy: {
    title: "Caddy",
    command: "caddy",
    args: ["version"],
    atLeast: [2, 0],
    tiers: ["systems"],
    debian: ["caddy"],
  },
  promtool: {
    title: "promtool",
    command: "promtool",
    args: ["--version"],
    atLeast: [2, 0],
    tiers: ["systems"],
    debian: ["prometheus"],
  },
  systemd: {
    title: "systemd-analyze",
    command: "systemd-analyze",
    args: ["--version"],
    tiers: ["systems"],
    debian: ["systemd"],
  },
  helm: {
    title: "Helm",
    command: "helm",
    args: ["version", "--short"],
    atLeast: [3, 8],
    tiers: ["systems"],
    otherwise: "go install helm.sh/helm/v3/cmd/helm@v3.19.0",
  },
  pip: {
    title: "Python",
    command: "python3",
    args: ["-m", "pip", "--version"],
    having: "pip",
    tiers: ["systems"],
    debian: ["python3-pip"],
  },
  postgres: {
    title: "PostgreSQL",
    command: "postgres",
    args: ["--version"],
    atLeast: [15, 0],
    beside: ["initdb", "pg_basebackup", "pg_verifybackup"],
    having: "its programs of a server",
    tiers: ["systems"],
    debian: ["postgresql-15"],
  },
  redis: {
    title: "Redis",
    command: "redis-server",
    args: ["--version"],
    tiers: ["systems", "bench"],
    debian: ["redis-server"],
  },
  openssl: { title: "OpenSSL", command: "openssl", args: ["version"], tiers: ["systems"], debian: ["openssl"] },
  jdk: {
    title: "JDK",
    command: "javac",
    args: ["-version"],
    atLeast: [17, 0],
    beside: ["java"],
    tiers: ["languages", "acquirer-host", "intake"],
    debian: ["openjdk-17-jdk-headless"],
  },
  maven: {
    title: "Maven",
    command: "mvn",
    args: ["-version"],
    tiers: ["languages", "acquirer-host", "intake"],
    debian: ["maven"],
  },
  python: {
    title: "Python",
    command: "python3",
    args: ["-c", pythonVersion],
    atLeast: [3, 9],
    having: "the packages cryptography and pip",
    tiers: ["languages"],
    debian: ["python3-cryptography", "python3-pip"],
  },
  php: {
    title: "PHP",
    command: "php",
    args: ["-r", phpVersion],
    atLeast: [8, 1],
    beside: ["composer", "phpcs", "phpunit"],
    having: "zip and nyholm/psr7, Composer, PHP_CodeSniffer and PHPUnit",
    tiers: ["languages"],
    debian: ["composer", "php-cli", "php-codesniffer", "php-nyholm-psr7", "php-zip", "phpunit"],
  },
  go: {
    title: "Go",
    command: "go",
    args: ["version"],
    atLeast: [1, 26],
    tiers: ["languages", "systems"],
    otherwise: "Debian 12 has an older one: install it as Go's own site says",
  },
  bun: {
    title: "Bun",
    command: "bun",
    args: ["--version"],
    tiers: ["packages"],
    otherwise: "npm install --global bun",
  },
  deno: {
    title: "Deno",
    command: "deno",
    args: ["--version"],
    tiers: ["packages"],
    otherwise: "npm install --global deno",
  },
} as const satisfies Readonly<Record<string, Program>>;

export type ProgramName = keyof typeof programs;

/** For `test` and `describe`: they are skipped on a machine that lacks something. */
export interface Needed {
  readonly skip: boolean;
  readonly meta: { readonly missing?: readonly string[] };
}

/** The options of tests that need these programs. */
export function needs(...names: readonly ProgramName[]): Needed {
  return orSkip(names.filter((name) => find(name) === undefined).map(describeMissing));
}

/** The options of tests that need something else besides. @param missing as a person reads it; empty: nothing */
export function orSkip(missing: readonly string[]): Needed {
  return missing.length === 0 ? { skip: false, meta: {} } : { skip: true, meta: { missing } };
}

/** The file to start. @throws Error if the machine does not have it */
export function pathOf(name: ProgramName): string {
  const path = find(name);
  if (path === undefined) throw new Error(`This needs ${describeMissing(name)}`);
  return path;
}

/** The programs that a tier needs, in words, and the line that installs those of Debian 12. */
export interface Installation {
  readonly tier: string;
  readonly programs: readonly string[];
  readonly debian: string;
}

/** Lists each tier that needs more than npm brings. */
export function installations(): Installation[] {
  const all: readonly Program[] = Object.values(programs);
  return [...new Set(all.flatMap(({ tiers }) => tiers))].map((tier) => {
    const needed = all.filter(({ tiers }) => tiers.includes(tier));
    const packages = needed.flatMap(({ debian = [] }) => debian);
    return { tier, programs: needed.map(describeProgram), debian: packages.length === 0 ? "" : aptGet(packages) };
  });
}

/** The files, by name and PATH. */
const found = new Map<string, string | undefined>();

function find(name: ProgramName): string | undefined {
  const key = `${name} ${process.env["PATH"]}`;
  if (!found.has(key)) found.set(key, search(programs[name]));
  return found.get(key);
}

function search({ command, args, atLeast = [0, 0], beside = [] }: Program): string | undefined {
  for (const folder of folders()) {
    if (![command, ...beside].every((one) => existsSync(join(folder, one)))) continue;
    const path = join(folder, command);
    const { status, stdout, stderr } = spawnSync(path, args, { encoding: "utf8", timeout: 120_000 });
    const [version = ""] = `${stdout}${stderr}`.trim().split("\n");
    if (status === 0 && isAtLeast(atLeast, version)) return path;
  }
  return undefined;
}

/** Debian keeps servers outside of an ordinary user's PATH, and those of PostgreSQL in a folder for each version. */
function folders(): string[] {
  const postgres = "/usr/lib/postgresql";
  const versions = existsSync(postgres) ? readdirSync(postgres).sort((a, b) => Number(b) - Number(a)) : [];
  const path = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  return [...path, "/usr/sbin", "/sbin", ...versions.map((version) => join(postgres, version, "bin"))];
}

/** Compares with the first number of the text. */
function isAtLeast([wantedMajor, wantedMinor]: readonly [number, number], text: string): boolean {
  const [, major = "0", minor = "0"] = /(\d+)(?:\.(\d+))?/.exec(text) ?? [];
  return Number(major) > wantedMajor || (Number(major) === wantedMajor && Number(minor) >= wantedMinor);
}

function describeMissing(name: ProgramName): string {
  const program: Program = programs[name];
  return `${describeProgram(program)}: ${program.debian === undefined ? program.otherwise : aptGet(program.debian)}`;
}

function describeProgram({ title, atLeast, having }: Program): string {
  const version = atLeast === undefined ? "" : ` ${atLeast.join(".").replace(/\.0$/, "")} or newer`;
  return `${title}${version}${having === undefined ? "" : ` with ${having}`}`;
}

function aptGet(packages: readonly string[]): string {
  return `apt-get install --no-install-recommends ${[...new Set(packages)].sort().join(" ")}`;
}
