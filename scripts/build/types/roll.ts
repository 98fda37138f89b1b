import { dirname, relative } from "node:path";
import { type Declaration, type Origin, readTypeModule, type TypeModule } from "./modules.ts";
import { shortDeclaration } from "./shorten.ts";

/** What a name stands for in the end: a declaration of ours with its overloads, or something of another package. */
type Meaning =
  | { readonly module: TypeModule; readonly name: string; readonly declarations: readonly Declaration[] }
  | { readonly package: string; readonly name: string };

type Read = (path: string) => TypeModule;

/**
 * Writes what a package's entries export into the entries themselves: by path, their text. A declaration stands in the
 * first entry that exports it, and the others import it from there. What nobody can import is left out.
 *
 * @param entries paths of .d.ts files as TypeScript emitted them
 */
export function rollTypes(entries: readonly string[]): Map<string, string> {
  const modules = new Map<string, TypeModule>();
  const read: Read = (path) => {
    const module = modules.get(path) ?? readTypeModule(path);
    modules.set(path, module);
    return module;
  };
  const all = entries.map((path) => ({ path, exported: exportsOf(read(path), read) }));
  const homes = new Map<Declaration, string>();
  for (const { path, exported } of all) {
    for (const one of [...exported.values()].flatMap(declarationsOf)) homes.set(one, homes.get(one) ?? path);
  }
  const exported = new Set(homes.keys());
  return new Map(all.map((entry) => [entry.path, writeEntry(entry, { homes, exported, read })]));
}

function declarationsOf(meaning: Meaning): readonly Declaration[] {
  return "package" in meaning ? [] : meaning.declarations;
}

function isValue(meaning: Meaning): boolean {
  return declarationsOf(meaning).some(({ kind }) => kind === "value");
}

function exportsOf(module: TypeModule, read: Read): Map<string, Meaning> {
  const all = new Map<string, Meaning>();
  for (const { from, typeOnly } of module.stars) {
    for (const [name, meaning] of exportsOf(read(from), read)) {
      if (!(typeOnly && isValue(meaning))) all.set(name, meaning);
    }
  }
  for (const [as, target] of module.exports) {
    const meaning = "local" in target ? meaningOf(module, target.local, read) : meaningAt(target, read);
    if (target.typeOnly && isValue(meaning)) throw new Error(`${module.path}: ${as} is a value, exported as a type`);
    all.set(as, meaning);
  }
  for (const [as, { name }] of all) {
    if (as !== name) throw new Error(`${module.path}: ${name} is exported as ${as}; only its own name can be written`);
  }
  return all;
}

/** What `name` means within a module. */
function meaningOf(module: TypeModule, name: string, read: Read): Meaning {
  const declarations = module.declarations.filter((one) => one.name === name);
  if (declarations.length > 0) return { module, name, declarations };
  const origin = module.imports.get(name);
  if (origin === undefined) throw new Error(`${module.path}: ${name} is neither declared nor imported`);
  return meaningAt(origin, read);
}

function meaningAt({ from, name }: Origin, read: Read): Meaning {
  if (!from.endsWith(".d.ts")) return { package: from, name };
  const found = exportsOf(read(from), read).get(name);
  if (found === undefined) throw new Error(`${from} does not export ${name}`);
  return found;
}

interface Plan {
  /** The entry that each declaration stands in. */
  readonly homes: Map<Declaration, string>;
  readonly exported: ReadonlySet<Declaration>;
  readonly read: Read;
}

function writeEntry(
  { path, exported }: { readonly path: string; readonly exported: ReadonlyMap<string, Meaning> },
  { homes, exported: exportedAnywhere, read }: Plan,
): string {
  const imports = new Map<string, Set<string>>();
  const reexports = new Map<string, Set<string>>();
  const written = new Map<Declaration, string>();
  const meanings = new Map<string, Meaning>();

  for (const [name, meaning] of exported) {
    const [one] = declarationsOf(meaning);
    const from = "package" in meaning ? meaning.package : specifierOf(path, one && homes.get(one));
    if (from === undefined) include(meaning);
    else addTo(reexports, from, name);
  }
  return textOf(imports, [...written.values()], reexports);

  function include(meaning: Meaning): void {
    if ("package" in meaning) addTo(imports, meaning.package, meaning.name);
    else for (const one of meaning.declarations) place(one, meaning.module);
  }

  function place(one: Declaration, module: TypeModule): void {
    const home = homes.get(one) ?? path;
    homes.set(one, home);
    const from = specifierOf(path, home);
    if (from !== undefined) {
      if (!exportedAnywhere.has(one)) throw new Error(`${one.name} is needed in two entries: let one export it`);
      addTo(imports, from, one.name);
    } else if (!written.has(one)) write(one, module);
  }

  function write(one: Declaration, module: TypeModule): void {
    const modifier = exportedAnywhere.has(one) ? "export " : one.kind === "value" ? "declare " : "";
    written.set(one, shortDeclaration(one.doc + modifier + one.text));
    for (const name of one.uses) {
      const isOurs = module.imports.has(name) || module.declarations.some((other) => other.name === name);
      // Whatever else is named is global: Promise, Uint8Array.
      if (!isOurs) continue;
      const meaning = meaningOf(module, name, read);
      const known = meanings.get(name) ?? meaning;
      if (meaning.name !== name) throw new Error(`${module.path}: ${meaning.name} is imported as ${name}`);
      if (!isSame(known, meaning)) throw new Error(`${path}: ${name} would be two things`);
      meanings.set(name, known);
      include(known);
    }
  }
}

function textOf(
  imports: ReadonlyMap<string, ReadonlySet<string>>,
  declarations: readonly string[],
  reexports: ReadonlyMap<string, ReadonlySet<string>>,
): string {
  const list = (names: ReadonlySet<string>) => `{${[...names].sort().join(",")}}`;
  const lines = [
    ...[...imports].map(([from, names]) => `import type${list(names)}from"${from}";`),
    ...declarations,
    ...[...reexports].map(([from, names]) => `export${list(names)}from"${from}";`),
  ];
  // Without any list of exports, what is not exported would count as exported.
  if (reexports.size === 0) lines.push("export{};");
  return `${lines.join("\n")}\n`;
}

function addTo(all: Map<string, Set<string>>, from: string, name: string): void {
  all.set(from, (all.get(from) ?? new Set<string>()).add(name));
}

/** Whichever entry of a package a name is imported from, it is the same thing. */
function isSame(one: Meaning, other: Meaning): boolean {
  if ("package" in one && "package" in other) return packageOf(one.package) === packageOf(other.package);
  return declarationsOf(one)[0] === declarationsOf(other)[0];
}

function packageOf(specifier: string): string {
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}

/** How one entry imports another; undefined for itself. */
function specifierOf(from: string, to = from): string | undefined {
  if (from === to) return undefined;
  const path = relative(dirname(from), to).replace(/\.d\.ts$/, ".js");
  return path.startsWith(".") ? path : `./${path}`;
}
