import { dirname, join } from "node:path";
import { packGo, packPhp, packPython } from "../../scripts/build/clients.ts";
import { type ProgramName, pathOf } from "../support/programs.ts";
import type { ShellCommand } from "./programs.ts";

/** The commands that build and run one language's receiver. `out` is a folder outside of the repository. */
export interface Language {
  readonly name: string;
  readonly needs: ProgramName;
  readonly source: string;
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

function phpPackage(): ClientPackage {
  const home = join(clients, "php");
  const project = (out: string) => join(out, "project");
  return {
    name: "PHP",
    needs: "php",
    source: home,
    build: (out) => ["bash", "-c", phpInstallation, "bash", out, home, ...packPhp(home, out)],
    vectors: (out, file) => {
      const check = join(home, "tests/vectors.php");
      return ["php", "-d", "zend.assertions=1", check, join(project(out), "vendor/autoload.php"), file];
    },
    serve: (out, agreement, port) => {
      const how = [`PAYBELL_KEYS=${agreement}`, "php", "-d", "post_max_size=16M", "-S", `127.0.0.1:${port}`];
      return ["env", ...how, join(project(out), "receiver.php")];
    },
    checks: {
      "its own tests": (out) => {
        const how = [`PAYBELL_AUTOLOAD=${project(out)}/vendor/autoload.php`, "phpunit", "--do-not-cache-result"];
        return ["env", ...how, "--bootstrap", join(home, "tests/bootstrap.php"), join(home, "tests/PackageTest.php")];
      },
      "composer validate": () => ["composer", "validate", "--strict", "--no-check-version", `--working-dir=${home}`],
      phpcs: () => ["phpcs", "--standard=PSR12", "-n", home],
    },
  };
}

/** Packs the archive, and installs it from there into an empty project, without packagist. */
const phpInstallation = `set -e
out=$1; home=$2; shift 2
export COMPOSER_HOME="$out/home" COMPOSER_ALLOW_SUPERUSER=1
"$@"
mkdir "$out/project"
cp "$home/examples/receiver.php" "$out/project"
cd "$out/project"
echo '{"repositories": [{"type": "artifact", "url": ".."}, {"packagist.org": false}]}' > composer.json
composer require --quiet --no-interaction paybell/paybell`;

export const packages: readonly ClientPackage[] = [pythonPackage(), goPackage(), phpPackage()];

export const languages = [java(join(import.meta.dirname, "../../docs/partner/receivers"))];
