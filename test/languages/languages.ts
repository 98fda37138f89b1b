import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { run, type ShellCommand } from "./programs.ts";

/** How the receiver of one language is built and run. `out` is a folder outside of the repository. */
export interface Language {
  readonly name: string;
  readonly source: string;
  /** The runtime found on this machine, or the missing one and its source. */
  find(): Promise<Found>;
}

export type Found = { readonly missing: string } | LanguageRuntime;

export interface LanguageRuntime {
  readonly version: string;
  /** Makes a copy of the receiver's folder fit what this machine has. */
  adapt?(folder: string): void;
  build(out: string): ShellCommand | undefined;
  vectors(out: string, file: string): ShellCommand;
  /** Reads `agreement`, listens on `port`, keeps its inbox in the folder that it is started in. */
  serve(out: string, agreement: string, port: number): ShellCommand;
}

const receivers = join(import.meta.dirname, "../../docs/partner/receivers");
const probeTimeoutMs = 20_000;

/** A file in the folder of the receiver. */
function besides({ source }: Language, name: string): string {
  return join(dirname(source), name);
}

/** The first line that the command prints, from wherever it prints it; undefined when it fails. */
async function probe(...command: ShellCommand): Promise<string | undefined> {
  const { exitCode, stdout, stderr } = await run(command, { timeoutMs: probeTimeoutMs });
  return exitCode === 0 ? (`${stdout}${stderr}`.trim().split("\n")[0] ?? "") : undefined;
}

/** Whether the first number with a dot in the text is at least `wanted`. */
function isAtLeast(wanted: readonly [major: number, minor: number], text: string): boolean {
  const [, major = "0", minor = "0"] = /(\d+)\.(\d+)/.exec(text) ?? [];
  return Number(major) > wanted[0] || (Number(major) === wanted[0] && Number(minor) >= wanted[1]);
}

const java: Language = {
  name: "Java",
  source: join(receivers, "java/Receiver.java"),
  async find() {
    const version = await probe("javac", "-version");
    if (version === undefined || !isAtLeast([17, 0], version))
      return { missing: "no JDK 17 or newer (Debian: openjdk-17-jdk-headless)" };
    return {
      version,
      build: (out) => ["javac", "-Xlint:all", "-Werror", "-d", out, java.source, besides(java, "Vectors.java")],
      vectors: (out, file) => ["java", "-cp", out, "Vectors", file],
      serve: (out, agreement) => ["java", "-cp", out, "Receiver", agreement],
    };
  },
};

const python: Language = {
  name: "Python",
  source: join(receivers, "python/receiver.py"),
  async find() {
    const show =
      "import sys, cryptography; print('Python', sys.version.split()[0], 'cryptography', cryptography.__version__)";
    for (const program of ["python3", "/usr/bin/python3"]) {
      const version = await probe(program, "-c", show);
      if (version === undefined || !isAtLeast([3, 9], version)) continue;
      const start = (source: string, file: string): ShellCommand => [program, "-B", "-W", "error", source, file];
      return {
        version,
        build: () => undefined,
        vectors: (_, file) => start(besides(python, "vectors.py"), file),
        serve: (_, agreement) => start(python.source, agreement),
      };
    }
    return { missing: "no Python 3.9 or newer with the package cryptography (Debian: python3-cryptography)" };
  },
};

const php: Language = {
  name: "PHP",
  source: join(receivers, "php/receiver.php"),
  async find() {
    const needs = "function_exists('openssl_decrypt') && function_exists('iconv') && function_exists('ctype_xdigit')";
    const version = await probe("php", "-r", `${needs} || exit(1); echo 'PHP ', PHP_VERSION;`);
    if (version === undefined || !isAtLeast([8, 1], version))
      return { missing: "no PHP 8.1 or newer with openssl, iconv and ctype (Debian: php-cli)" };
    return {
      version,
      build: () => ["php", "-l", php.source],
      vectors: (_, file) => ["php", besides(php, "vectors.php"), file],
      serve: (_, agreement, port) => [
        "env",
        `PAYBELL_AGREEMENT=${agreement}`,
        ...["php", "-d", "post_max_size=16M", "-S", `127.0.0.1:${port}`, php.source],
      ],
    };
  },
};

const csharp: Language = {
  name: "C#",
  source: join(receivers, "csharp/Receiver.cs"),
  async find() {
    const version = await probe("dotnet", "--version");
    if (version === undefined || !isAtLeast([8, 0], version))
      return { missing: "no .NET SDK 8 or newer (not in Debian)" };
    const program = (out: string) => join(out, "bin/receiver.dll");
    // An SDK brings what its own framework needs; that of an older one would have to be fetched.
    const adapt = (folder: string) => {
      const project = join(folder, "receiver.csproj");
      const text = readFileSync(project, "utf8");
      writeFileSync(project, text.replace(/net\d+\.0/, `net${version.split(".")[0]}.0`));
    };
    return {
      version: `.NET ${version}`,
      adapt,
      build(out) {
        cpSync(join(receivers, "csharp"), out, { recursive: true });
        adapt(out);
        return ["dotnet", "build", join(out, "receiver.csproj"), "-c", "Release", "-o", join(out, "bin")];
      },
      vectors: (out, file) => ["dotnet", program(out), "--vectors", file],
      serve: (out, agreement) => ["dotnet", program(out), agreement],
    };
  },
};

const go: Language = {
  name: "Go",
  source: join(receivers, "go/receiver.go"),
  async find() {
    const version = await probe("go", "version");
    if (version === undefined || !isAtLeast([1, 23], version))
      return { missing: "no Go 1.23 or newer (Debian: golang)" };
    const program = (out: string) => join(out, "receiver");
    return {
      version,
      build: (out) => ["go", "build", "-C", join(receivers, "go"), "-o", program(out), "."],
      vectors: (out, file) => [program(out), "--vectors", file],
      serve: (out, agreement) => [program(out), agreement],
    };
  },
};

const ruby: Language = {
  name: "Ruby",
  source: join(receivers, "ruby/receiver.rb"),
  async find() {
    const version = await probe("ruby", "-rpuma", "-e", "puts %(Ruby #{RUBY_VERSION} Puma #{Puma::Const::VERSION})");
    if (version === undefined || !isAtLeast([3, 0], version))
      return { missing: "no Ruby 3.0 or newer with Puma (Debian: ruby, puma)" };
    return {
      version,
      build: () => ["ruby", "-wc", ruby.source],
      vectors: (_, file) => ["ruby", "-w", besides(ruby, "vectors.rb"), file],
      serve: (_, agreement) => ["ruby", ruby.source, agreement],
    };
  },
};

export const languages: readonly Language[] = [java, python, php, csharp, go, ruby];
