import { join } from "node:path";
import { packGo, packJava, packPhp, packPython } from "../../scripts/build/clients.ts";
import { type ProgramName, pathOf } from "../support/programs.ts";
import type { ShellCommand } from "./programs.ts";

/** The commands that build and run one package of `clients`. `out` is a folder outside of the repository. */
export interface ClientPackage {
  readonly name: string;
  readonly needs: readonly ProgramName[];
  /** Makes it as `npm run pack` does, and installs it into the empty folder `out`. */
  build(out: string): ShellCommand;
  vectors(out: string, file: string): ShellCommand;
  /** Reads `agreement`, listens on `port`, keeps its inbox in the folder that it is started in. */
  serve(out: string, agreement: string, port: number): ShellCommand;
  /** Its own tests, then the linters of its language. Each is one command. */
  readonly checks: Readonly<Record<string, (out: string) => ShellCommand>>;
}

const clients = join(import.meta.dirname, "../../clients");

function pythonPackage(): ClientPackage {
  const home = join(clients, "python");
  const within = (out: string, ...args: string[]): ShellCommand => {
    return ["env", `PYTHONPATH=${out}/installed`, pathOf("python"), "-B", "-W", "error", ...args];
  };
  return {
    name: "Python",
    needs: ["python"],
    build: (out) => ["bash", "-c", pythonInstallation, "bash", out, ...packPython(home, out, pathOf("python"))],
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
    needs: ["go"],
    build: (out) => ["bash", "-c", goInstallation, "bash", out, home, ...packGo(home, out)],
    vectors: (out, file) => [join(out, "project/vectors"), file],
    serve: (out, agreement) => [join(out, "project/example"), agreement],
    checks: {
      "its own tests": () => within("test", "-C", home, "./..."),
      "go vet": () => within("vet", "-C", home, "./..."),
      gofmt: () => ["bash", "-c", 'unformatted=$(gofmt -l "$0"); echo "$unformatted"; [ -z "$unformatted" ]', home],
    },
  };
}

/**
 * Packs the module, installs it from there into an empty module, and builds its two programs there. What it depends on comes
 * from what this machine has fetched before, or is fetched.
 */
const goInstallation = `set -e
out=$1; home=$2; shift 2
"$@"
mkdir -p "$out/project/receiver" "$out/project/check"
cp "$home/example/receiver.go" "$out/project/receiver"
cp "$home/internal/vectors/vectors.go" "$out/project/check"
cd "$out/project"
export GOPROXY="file://$out/go-proxy,file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)" GOSUMDB=off GOFLAGS="-mod=mod -modcacherw" GOMODCACHE="$out/cache"
go mod init example.org/shop
go get paybell.example/go/paybell
go build -o example ./receiver
go build -o vectors ./check`;

function phpPackage(): ClientPackage {
  const home = join(clients, "php");
  const project = (out: string) => join(out, "project");
  return {
    name: "PHP",
    needs: ["php"],
    build: (out) => ["bash", "-c", phpInstallation, "bash", out, home, ...packPhp(home, out)],
    vectors: (out, file) => {
      const check = join(home, "tests/vectors.php");
      return ["php", "-d", "zend.assertions=1", check, join(project(out), "vendor/autoload.php"), file];
    },
    serve: (out, agreement, port) => {
      const limits = ["-d", "post_max_size=16M", "-d", "memory_limit=256M"];
      const how = [`PAYBELL_KEYS=${agreement}`, "php", ...limits, "-S", `127.0.0.1:${port}`];
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

function javaPackage(): ClientPackage {
  const home = join(clients, "java");
  const start = (out: string, ...args: string[]): ShellCommand => {
    const command = `exec java ${shortLived} -cp "$0/target/classes:$(cat "$0/classpath")" "$@"`;
    return ["bash", "-c", command, join(out, "project"), ...args];
  };
  return {
    name: "Java",
    needs: ["jdk", "maven"],
    build: (out) => ["bash", "-c", javaInstallation, "bash", out, home, ...packJava(home, out)],
    vectors: (out, file) => start(out, "shop.Vectors", file),
    serve: (out, agreement) => ["env", `PAYBELL_KEYS=${agreement}`, ...start(out, "shop.Receiver")],
    checks: {
      "its own tests, every warning of javac, and palantir-java-format": () => {
        const goals = ["-f", join(home, "pom.xml"), `-DargLine=${shortLived}`, "spotless:check", "verify"];
        return ["env", `MAVEN_OPTS=${shortLived}`, "mvn", "-B", "-q", ...goals];
      },
    },
  };
}

/** A Java program of a minute spends most of it on compiling itself better. */
const shortLived = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC";

/**
 * Packs the jar, installs it for a project that has nothing but the example, and compiles that. The project has its own
 * repository, which begins with what this machine has fetched before.
 */
const javaInstallation = `set -e
out=$1; home=$2; shift 2
export MAVEN_OPTS="${shortLived}"
"$@"
cp -al "$HOME/.m2/repository" "$out/repository" && rm -rf "$out/repository/example" || true
cp -r "$home/example" "$out/project"
cp "$home/src/test/java/shop/Vectors.java" "$out/project/src/main/java/shop"
cd "$out/project"
install="org.apache.maven.plugins:maven-install-plugin:3.1.4:install-file -Dfile=$(echo "$out"/paybell-*.jar)"
mvn -B -q "-Dmaven.repo.local=$out/repository" $install compile dependency:build-classpath -Dmdep.outputFile=classpath`;

export const packages: readonly ClientPackage[] = [pythonPackage(), goPackage(), phpPackage(), javaPackage()];
