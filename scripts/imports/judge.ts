import { posix } from "node:path";
import type { Violation } from "../sources/finding.ts";
import type { Source } from "../sources/program.ts";
import { writtenConstants } from "./constants.ts";
import { type Allowance, LAYOUT, placeOf } from "./layout.ts";
import type { ImportStatement } from "./statements.ts";

export type Objection = Pick<Violation, "rule" | "forbidden" | "remedy">;

/** The layout's objection to one import of the file `path`, or undefined if it is allowed. */
export function judge(
  path: string,
  place: string,
  statement: ImportStatement,
  sources: ReadonlyMap<string, Source>,
): Objection | undefined {
  const { specifier } = statement;
  if (specifier === undefined) {
    return {
      rule: "imports are written out",
      forbidden: "this import computes its module at run time, so that no check can see it",
      remedy: "Write the module's name as a literal",
    };
  }
  if (specifier.startsWith(".")) return judgeRelative(path, place, statement, specifier, sources);
  const own = /^@paybell\/([^/]+)/.exec(specifier)?.[1] ?? (/^paybell(\/|$)/.test(specifier) ? "cli" : undefined);
  if (own !== undefined) return judgePlaces(place, own, statement, () => new Set());
  return undefined;
}

function judgeRelative(
  path: string,
  place: string,
  statement: ImportStatement,
  specifier: string,
  sources: ReadonlyMap<string, Source>,
): Objection | undefined {
  const target = posix.join(posix.dirname(path), specifier);
  const packageOf = (file: string) => file.split("/", 2).join("/");
  if (packageOf(target) === packageOf(path) && !target.startsWith(`${packageOf(path)}/src/`)) return undefined;
  const targetPlace = placeOf(target);
  if (targetPlace === undefined || packageOf(target) !== packageOf(path)) {
    return {
      rule: "packages import each other by name",
      forbidden: `"${specifier}" leaves the package by a path`,
      remedy: "Import @paybell/<name>, or move what is needed into this package",
    };
  }
  return judgePlaces(place, targetPlace, statement, () => {
    const source = sources.get(target);
    return source === undefined ? new Set() : writtenConstants(source);
  });
}

function judgePlaces(
  place: string,
  target: string,
  statement: ImportStatement,
  constants: () => ReadonlySet<string>,
): Objection | undefined {
  if (place === target) return undefined;
  const rules = LAYOUT[place];
  if (rules === "everything") return undefined;
  const allowed = rules?.[target];
  if (allowed !== undefined && fits(allowed, statement, constants)) return undefined;
  return {
    rule: ruleOf(place),
    forbidden: `${place} imports ${target} ("${statement.specifier}"${statement.kind === "type" ? ", types" : ""})`,
    remedy: remedyFor(allowed),
  };
}

function fits(allowed: Allowance, statement: ImportStatement, constants: () => ReadonlySet<string>): boolean {
  if (allowed === "any") return true;
  if (allowed === "dynamic") return statement.kind === "dynamic";
  if (statement.kind === "type") return true;
  if (allowed === "type" || statement.kind === "dynamic") return false;
  const known = constants();
  return statement.valueNames.every((name) => known.has(name));
}

function ruleOf(place: string): string {
  const rules = LAYOUT[place];
  if (rules === undefined || rules === "everything") return `${place} is not part of the layout`;
  const allowed = Object.entries(rules).map(([target, how]) => (how === "any" ? target : `${target} (${how} only)`));
  return `${place} may import ${allowed.length > 0 ? allowed.join(", ") : "nothing of ours"}`;
}

function remedyFor(allowed: Allowance | undefined): string {
  if (allowed === "dynamic") return "Use `await import()` where it is needed";
  if (allowed === "type") return "Use `import type`, and have app.ts hand over the value";
  if (allowed === "interface") {
    return "Use `import type`; only constants whose value is written out may be imported as values";
  }
  return "Own the interface you need and have app.ts hand over the implementation, or move the code inward";
}
