import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { run, type ShellCommand } from "./programs.ts";

/** The commands that build and run one language's receiver. `out` is a folder outside of the repository. */
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

const probeTimeoutMs = 20_000;

/** A file in the folder of the receiver. */
function besides(source: string, name: string): string {
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

function java(receivers: string): Language {
  const source = join(receivers, "java/Receiver.java");
  return {
    name: "Java",
    source,
    async find() {
      const version = await probe("javac", "-version");
      if (version === undefined || !isAtLeast([17, 0], version))
        return { missing: "no JDK 17 or newer (Debian: openjdk-17-jdk-headless)" };
      return {
        version,
        build: (out) => ["javac", "-Xlint:all", "-Werror", "-d", out, source, besides(source, "Vectors.java")],
        vectors: (out, file) => ["java", "-cp", out, "Vectors", file],
        serve: (out, agreement) => ["java", "-cp", out, "Receiver", agreement],
      };
    },
  };
}

function python(receivers: string): Language {
  const source = join(receivers, "python/receiver.py");
  return {
    name: "Python",
    source,
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
          vectors: (_, file) => start(besides(source, "vectors.py"), file),
          serve: (_, agreement) => start(source, agreement),
        };
      }
      return { missing: "no Python 3.9 or newer with the package cryptography (Debian: python3-cryptography)" };
    },
  };
}

function php(receivers: string): Language {
  const source = join(receivers, "php/receiver.php");
  return {
    name: "PHP",
    source,
    async find() {
      const needs = "function_exists('openssl_decrypt') && function_exists('iconv') && function_exists('ctype_xdigit')";
      const version = await probe("php", "-r", `${needs} || exit(1); echo 'PHP ', PHP_VERSION;`);
      if (version === undefined || !isAtLeast([8, 1], version))
        return { missing: "no PHP 8.1 or newer with openssl, iconv and ctype (Debian: php-cli)" };
      return {
        version,
        build: () => ["php", "-l", source],
        vectors: (_, file) => ["php", besides(source, "vectors.php"), file],
        serve: (_, agreement, port) => [
          "env",
          `PAYBELL_AGREEMENT=${agreement}`,
          ...["php", "-d", "post_max_size=16M", "-S", `127.0.0.1:${port}`, source],
        ],
      };
    },
  };
}

function csharp(receivers: string): Language {
  const source = join(receivers, "csharp/Receiver.cs");
  return {
    name: "C#",
    source,
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
}

function go(receivers: string): Language {
  const source = join(receivers, "go/receiver.go");
  return {
    name: "Go",
    source,
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
}

function ruby(receivers: string): Language {
  const source = join(receivers, "ruby/receiver.rb");
  return {
    name: "Ruby",
    source,
    async find() {
      const version = await probe("ruby", "-rpuma", "-e", "puts %(Ruby #{RUBY_VERSION} Puma #{Puma::Const::VERSION})");
      if (version === undefined || !isAtLeast([3, 0], version))
        return { missing: "no Ruby 3.0 or newer with Puma (Debian: ruby, puma)" };
      return {
        version,
        build: () => ["ruby", "-wc", source],
        vectors: (_, file) => ["ruby", "-w", besides(source, "vectors.rb"), file],
        serve: (_, agreement) => ["ruby", source, agreement],
      };
    },
  };
}

/** The receivers below a folder that is laid out as docs/partner/receivers. */
export function languagesIn(receivers: string): readonly Language[] {
  return [java, python, php, csharp, go, ruby].map((language) => language(receivers));
}

export const languages = languagesIn(join(import.meta.dirname, "../../docs/partner/receivers"));
