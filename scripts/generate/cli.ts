import { withAccessOptions, withSealing } from "../../packages/cli/src/client/connection.ts";
import { clientVariables } from "../../packages/cli/src/client/credentials.ts";
import { program } from "../../packages/cli/src/program.ts";
import { command, describedOf } from "../../packages/cli/src/shell/command.ts";
import type { CommandContext } from "../../packages/cli/src/shell/context.ts";
import { exitCodeMeanings } from "../../packages/cli/src/shell/failure.ts";
import { code, type GeneratedFile, table, withParts } from "./document.ts";

type Command = ReturnType<typeof program>;
type Argument = Command["registeredArguments"][number];
type Option = Command["options"][number];

/** Every command, as its own `--help` tells it. */
export function cliReference(): GeneratedFile {
  // Commands are described and not run, so the context is never used.
  const root = program({ stdout: process.stdout, stderr: process.stderr, process } as unknown as CommandContext);
  const common = commonOptions(root);
  const shown = root
    .createHelp()
    .visibleCommands(root)
    .filter((one) => one.name() !== "help");
  const [forPartner, forOperator] = [isForPartner, (heading: string) => !isForPartner(heading)].map((isFor) =>
    sectionsOf(
      shown.filter((one) => isFor(one.helpGroup())),
      common,
    ).flatMap((groups) => sectionReference(groups, common)),
  );
  const hasOption = (variable: string) => common.some(({ description }) => description.includes(`(${variable})`));
  return withParts("docs/reference/cli.md", {
    "exit-codes": table(
      ["Code", "Meaning"],
      Object.entries(exitCodeMeanings).map(([exitCode, meaning]) => [exitCode, sentence(meaning)]),
    ),
    variables: `${variables
      .filter(([name]) => !hasOption(name))
      .map(([name, meaning]) => `${code(name)} (${meaning.charAt(0).toLowerCase()}${meaning.slice(1)})`)
      .join(", ")}.`,
    "common-options": table(
      ["Option", "Meaning"],
      common.map((option) => [code(option.flags), meaningOf(option)]),
    ),
    partner: forPartner?.join("\n\n") ?? "",
    operator: forOperator?.join("\n\n") ?? "",
  });
}

/** What a partner runs. All else stands under "For the operator", which the site of partners leaves out. */
function isForPartner(heading: string): boolean {
  return ["For a partner's engineer:", "For both sides:", "Your shell:"].includes(heading);
}

const variables = [...Object.entries(clientVariables), ["PAYBELL_OPERATOR_TOKEN", "The operator's token"]] as const;

/** The options that say which service is called, and in which form the output is. */
const accessOptions = withAccessOptions(command("", { summary: "", examples: [] })).options;

/** An option that so many commands have is a common one. */
const commonMin = 3;

/** The options of access and keys, then those that many commands have. Their meaning stands once. */
function commonOptions(root: Command): Option[] {
  const called = withSealing(withAccessOptions(command("", { summary: "", examples: [] }))).options;
  const others = leaves(root).flatMap((one) => one.options.filter((option) => !isIn(called, option)));
  const many = [...Map.groupBy(others, keyOf).values()].filter(({ length }) => length >= commonMin);
  const once = many.toSorted((one, other) => other.length - one.length).flatMap(([first]) => first ?? []);
  // Another meaning of the same word is explained where it is used.
  return [...called, ...once.filter(({ flags }, at) => once.findIndex((other) => other.flags === flags) === at)];
}

/** The commands that begin with one word are a section. Those that need no table of options share one. */
function sectionsOf(groups: readonly Command[], common: readonly Option[]): Command[][] {
  const sections: Command[][] = [];
  for (const group of groups) {
    const last = sections.at(-1);
    const isOfLast = last?.[0]?.helpGroup() === group.helpGroup();
    if (isOfLast && [...(last ?? []), group].every((one) => isBrief(one, common))) last?.push(group);
    else sections.push([group]);
  }
  return sections;
}

/** So many options are explained with their command. */
const inTextMax = 3;

function isBrief(group: Command, common: readonly Option[]): boolean {
  return leaves(group).every((one) => without(one.options, common).length <= inTextMax);
}

/** The help has the examples. */
function sectionReference(groups: readonly Command[], common: readonly Option[]): string[] {
  const all = groups.flatMap(leaves);
  const only = all.length === 1 ? all[0] : undefined;
  const words = (only === undefined ? groups : all).map(pathOf);
  const rows = groups.every((one) => isBrief(one, common)) ? [] : optionRows(all, common);
  const texts = all.map((one) => textOf(one, common, rows.length > 0 ? [] : without(one.options, common)));
  return [
    `### ${words.map((word, at) => (at === 0 ? word : word.replace("paybell ", ""))).join(", ")}`,
    only === undefined ? table(["Command", "What it does"], zip(all.map(usageOf), texts)) : texts.join(""),
    ...(rows.length === 0 ? [] : [optionTable(rows, only === undefined)]),
  ];
}

function zip(left: readonly string[], right: readonly string[]): string[][] {
  return left.map((one, at) => [one, right[at] ?? ""]);
}

function usageOf(one: Command): string {
  return code([pathOf(one), ...one.registeredArguments.map(nameOf)].join(" "));
}

function textOf(one: Command, common: readonly Option[], own: readonly Option[]): string {
  const { description = "", exitCodes = {} } = describedOf(one) ?? {};
  // The cases of certify have a page.
  const paragraphs = description.split("\n\n").filter((block) => block !== "" && !block.startsWith("Cases: "));
  const text = paragraphs.map((block) => (block.startsWith("  ") ? listed(block) : block));
  const shared = one.options.filter((option) => isIn(common, option));
  const access = shared.filter((option) => isIn(accessOptions, option));
  const named = access.length === 0 || access.length === accessOptions.length ? without(shared, access) : shared;
  const given = one.registeredArguments.filter(({ description: meaning }) => !isSaidOnce(meaning));
  const codes = Object.entries(exitCodes).map(([exitCode, meaning]) => `${exitCode}: ${meaning}.`);
  return [
    `${sentence(one.summary())}.`,
    ...text,
    ...given.map((argument) => `${code(nameOf(argument))}: ${argument.description}.`),
    ...own.map((option) => `${code(option.flags)}: ${meaningOf(option)}.`),
    ...(named.length === 0 ? [] : [`Common options: ${named.map(({ long }) => code(long ?? "")).join(", ")}.`]),
    ...(codes.length === 0 ? [] : [`Exit codes. ${codes.join(" ")}`]),
  ].join(" ");
}

/** The page says once that an id is the one that the list shows, and which partner is meant without one. */
function isSaidOnce(description: string): boolean {
  return (
    description === "" || /\bas `paybell .*` shows? (?:it|them)$|the partner of the credentials$/.test(description)
  );
}

/** The indented lines of a help text, a word and its meaning each, as one sentence. */
function listed(block: string): string {
  const items = block.split("\n").map((line) => line.trim().replace(/^(\S+) +/, (_, word: string) => `${code(word)} `));
  return `${items.join("; ")}.`;
}

/** The options that are no common ones: each once, with the commands that have it. */
function optionRows(all: readonly Command[], common: readonly Option[]): string[][] {
  const found = all.flatMap((one) => without(one.options, common).map((option) => ({ one, option })));
  return [...Map.groupBy(found, ({ option }) => keyOf(option)).values()].flatMap(([first, ...others]) => {
    if (first === undefined) return [];
    const names = [first, ...others].map(({ one }) => code(one.name()));
    return [[code(first.option.flags), names.join(", "), meaningOf(first.option)]];
  });
}

function optionTable(rows: readonly string[][], isOfSeveral: boolean): string {
  if (isOfSeveral) return table(["Option", "Of", "Meaning"], rows);
  const narrow = rows.map(([option = "", , meaning = ""]) => [option, meaning]);
  return table(["Option", "Meaning"], narrow);
}

function meaningOf({ description, argChoices, defaultValue, negate }: Option): string {
  const choices = argChoices === undefined ? "" : `; one of ${argChoices.map(code).join(", ")}`;
  const value = defaultValue === undefined || negate ? "" : `; default: ${code(String(defaultValue))}`;
  return `${description}${choices}${value}`;
}

function nameOf(argument: Argument): string {
  const name = argument.variadic ? `${argument.name()}...` : argument.name();
  return argument.required ? `<${name}>` : `[${name}]`;
}

function keyOf(option: Option): string {
  return `${option.flags} ${meaningOf(option)}`;
}

function isIn(options: readonly Option[], option: Option): boolean {
  return options.some((other) => keyOf(other) === keyOf(option));
}

function without(options: readonly Option[], others: readonly Option[]): Option[] {
  return options.filter((option) => !isIn(others, option));
}

function leaves(one: Command): Command[] {
  return one.commands.length === 0 ? [one] : one.commands.flatMap(leaves);
}

function pathOf(one: Command): string {
  return one.parent === null ? one.name() : `${pathOf(one.parent)} ${one.name()}`;
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}
