import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { packGo, packPython } from "../../scripts/build/clients.ts";
import { type ProgramName, pathOf, versionOf } from "../support/programs.ts";
import type { ShellCommand } from "./programs.ts";

/** The commands that build and run one language's receiver. `out` is a folder outside of the repository. */
export interface Language {
  readonly name: string;
  readonly needs: ProgramName;
  readonly source: string;
  /** Makes a copy of the receiver's folder fit what this machine has. */
  adapt?(folder: string): void;
  build(out: string): ShellCommand | undefined;
  vectors(out: string, file: string): ShellCommand;
  /** Reads `agreement`, listens on `port`, keeps its inbox in the folder that it is started in. */
  serve(out: string, agreement: string, port: number): ShellCommand;
}

/** A package of `clients`: `build` makes it as `npm run pack` does, and installs it into the empty folder `out`. */
export interface ClientPackage extends Language {
  /** Its own tests, then the linters of its language. Each is one command. */
  readonly checks: Readonly<Record<string, (out: string) => ShellCommand>>;
}

/** A file in the folder of the receiver. */
function besides(source: string, name: string): string {
  return join(dirname(source), name);
}

function java(receivers: string): Language {
  const source = join(receivers, "java/Receiver.java");
  return {
    name: "Java",
    needs: "jdk",
    source,
    build: (out) => ["javac", "-Xlint:all", "-Werror", "-d", out, source, besides(source, "Vectors.java")],
    vectors: (out, file) => ["java", "-cp", out, "Vectors", file],
    serve: (out, agreement) => ["java", "-cp", out, "Receiver", agreement],
  };
}

function python(receivers: string): Language {
  const source = join(receivers, "python/receiver.py");
  // The first python3 in PATH may lack the package.
  const start = (program: string, file: string): ShellCommand => {
    return [pathOf("python"), "-B", "-W", "error", program, file];
  };
  return {
    name: "Python",
    needs: "python",
    source,
    build: () => undefined,
    vectors: (_, file) => start(besides(source, "vectors.py"), file),
    serve: (_, agreement) => start(source, agreement),
  };
}

function php(receivers: string): Language {
  const source = join(receivers, "php/receiver.php");
  return {
    name: "PHP",
    needs: "php",
    source,
    build: () => ["php", "-l", source],
    vectors: (_, file) => ["php", besides(source, "vectors.php"), file],
    serve: (_, agreement, port) => [
      "env",
      `PAYBELL_AGREEMENT=${agreement}`,
      ...["php", "-d", "post_max_size=16M", "-S", `127.0.0.1:${port}`, source],
    ],
  };
}

function csharp(receivers: string): Language {
  const program = (out: string) => join(out, "bin/receiver.dll");
  // An SDK brings what its own framework needs; that of an older one would have to be fetched.
  const adapt = (folder: string) => {
    const project = join(folder, "receiver.csproj");
    const text = readFileSync(project, "utf8");
    writeFileSync(project, text.replace(/net\d+\.0/, `net${versionOf("dotnet").split(".")[0]}.0`));
  };
  return {
    name: "C#",
    needs: "dotnet",
    source: join(receivers, "csharp/Receiver.cs"),
    adapt,
    build(out) {
      cpSync(join(receivers, "csharp"), out, { recursive: true });
      adapt(out);
      return ["dotnet", "build", join(out, "receiver.csproj"), "-c", "Release", "-o", join(out, "bin")];
    },
    vectors: (out, file) => ["dotnet", program(out), "--vectors", file],
    serve: (out, agreement) => ["dotnet", program(out), agreement],
  };
}

function go(receivers: string): Language {
  const program = (out: string) => join(out, "receiver");
  return {
    name: "Go",
    needs: "go",
    source: join(receivers, "go/receiver.go"),
    build: (out) => ["go", "build", "-C", join(receivers, "go"), "-o", program(out), "."],
    vectors: (out, file) => [program(out), "--vectors", file],
    serve: (out, agreement) => [program(out), agreement],
  };
}

function ruby(receivers: string): Language {
  const source = join(receivers, "ruby/receiver.rb");
  return {
    name: "Ruby",
    needs: "ruby",
    source,
    build: () => ["ruby", "-wc", source],
    vectors: (_, file) => ["ruby", "-w", besides(source, "vectors.rb"), file],
    serve: (_, agreement) => ["ruby", source, agreement],
  };
}

/** The receivers below a folder that is laid out as docs/partner/receivers. */
export function languagesIn(receivers: string): readonly Language[] {
  return [java, python, php, csharp, go, ruby].map((language) => language(receivers));
}

const clients = join(import.meta.dirname, "../../clients");

function pythonPackage(): ClientPackage {
  const home = join(clients, "python");
  const within = (out: string, ...args: string[]): ShellCommand => {
    return ["env", `PYTHONPATH=${out}/installed`, pathOf("python"), "-B", "-W", "error", ...args];
  };
  return {
    name: "Python",
    needs: "python",
    source: home,
    build: (out) => ["bash", "-c", pythonInstallation, "bash", out, ...packPython(pathOf("python"), home, out)],
    vectors: (out, file) => within(out, join(home, "tests/vectors.py"), file),
    serve: (out, agreement) => within(out, join(home, "examples/receiver.py"), agreement),
    checks: {
      "its own tests": (out) => within(out, "-m", "unittest", "discover", "-s", join(home, "tests")),
      "ruff check": (out) => within(out, "-m", "ruff", "check", "--no-cache", home),
      "ruff format": (out) => within(out, "-m", "ruff", "format", "--no-cache", "--check", home),
    },
  };
}

/** Runs the command that makes the wheel, and installs it, with ruff for the checks. */
const pythonInstallation = `set -e
out=$1; python=$2; shift
"$@"
"$python" -m pip install --quiet --target "$out/installed" --no-deps "$out"/paybell-*.whl 'ruff==0.17.6'`;

function goPackage(): ClientPackage {
  const home = join(clients, "go");
  const within = (...args: string[]): ShellCommand => ["go", ...args];
  return {
    name: "Go",
    needs: "go",
    source: home,
    build: (out) => ["bash", "-c", goInstallation, "bash", out, home, ...packGo(home, join(out, "proxy"))],
    vectors: (out, file) => [join(out, "project/vectors"), file],
    serve: (out, agreement) => [join(out, "project/example"), agreement],
    checks: {
      "its own tests": () => within("test", "-C", home, "./..."),
      "go vet": () => within("vet", "-C", home, "./..."),
      gofmt: () => ["bash", "-c", 'unformatted=$(gofmt -l "$0"); echo "$unformatted"; [ -z "$unformatted" ]', home],
    },
  };
}

/** Packs the module, installs it from there into an empty module, and builds its two programs there. */
const goInstallation = `set -e
out=$1; home=$2; shift 2
"$@"
mkdir -p "$out/project/receiver" "$out/project/check"
cp "$home/example/receiver.go" "$out/project/receiver"
cp "$home/internal/vectors/vectors.go" "$out/project/check"
cd "$out/project"
export GOPROXY="file://$out/proxy" GOSUMDB=off GOFLAGS="-mod=mod -modcacherw" GOMODCACHE="$out/cache"
go mod init example.org/shop
go get paybell.example/go/paybell
go build -o example ./receiver
go build -o vectors ./check`;

export const packages: readonly ClientPackage[] = [pythonPackage(), goPackage()];

export const languages = languagesIn(join(import.meta.dirname, "../../docs/partner/receivers")).filter(({ name }) =>
  packages.every((one) => one.name !== name),
);
