import { withAccessOptions, withSealing } from "../../packages/cli/src/client/connection.ts";
import { clientVariables } from "../../packages/cli/src/client/credentials.ts";
import { program } from "../../packages/cli/src/program.ts";
import { command, describedOf } from "../../packages/cli/src/shell/command.ts";
import type { CommandContext } from "../../packages/cli/src/shell/context.ts";
import { exitCodeMeanings } from "../../packages/cli/src/shell/failure.ts";
import { code, codeBlock, type GeneratedFile, table, withParts } from "./document.ts";

type Command = ReturnType<typeof program>;
type Argument = Command["registeredArguments"][number];
type Option = Command["options"][number];

/** Every command, as its own `--help` tells it. */
export function cliReference(): GeneratedFile {
  // Commands are described and not run, so the context is never used.
  const root = program({ stdout: process.stdout, stderr: process.stderr, process } as unknown as CommandContext);
  const common = commonOptions(root);
  const [forPartner, forOperator] = [isForPartner, (heading: string) => !isForPartner(heading)].map((isFor) =>
    root.commands.filter((one) => isFor(one.helpGroup())).flatMap((group) => groupReference(group, common)),
  );
  return withParts("docs/reference/cli.md", {
    "exit-codes": table(
      ["Code", "Meaning"],
      Object.entries(exitCodeMeanings).map(([exitCode, meaning]) => [exitCode, sentence(meaning)]),
    ),
    variables: table(
      ["Variable", "Meaning"],
      variables.map(([name, meaning]) => [code(name), meaning]),
    ),
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
const commonMin = 4;

/** The options of access and keys, then those that many commands have. Their meaning stands once. */
function commonOptions(root: Command): Option[] {
  const called = withSealing(withAccessOptions(command("", { summary: "", examples: [] }))).options;
  const others = leaves(root).flatMap((one) => one.options.filter((option) => !isIn(called, option)));
  const many = [...Map.groupBy(others, keyOf).values()].filter(({ length }) => length >= commonMin);
  const once = many.flatMap(([first]) => first ?? []);
  // A word with two meanings is explained where it is used.
  return [...called, ...once.filter((one) => once.every((other) => other === one || other.flags !== one.flags))];
}

/** A section for all commands that begin with one word. */
function groupReference(group: Command, common: readonly Option[]): string[] {
  const all = leaves(group);
  const only = all.length === 1 ? all[0] : undefined;
  const examples = all.length === 1 ? all.flatMap(examplesOf) : all.flatMap(tellingExamplesOf);
  const rows = optionRows(all, common);
  const isTable = rows.length > inTextMax;
  const texts = all.map((one) => textOf(one, common, isTable ? [] : without(one.options, common)));
  return [
    `### ${pathOf(only ?? group)}`,
    only === undefined ? table(["Command", "What it does"], zip(all.map(usageOf), texts)) : texts.join(""),
    ...(examples.length === 0 ? [] : [codeBlock("sh", examples.join("\n"))]),
    ...(isTable ? [optionTable(rows, only === undefined)] : []),
  ];
}

/** So many options of a group are explained with its commands. */
const inTextMax = 3;

function zip(left: readonly string[], right: readonly string[]): string[][] {
  return left.map((one, at) => [one, right[at] ?? ""]);
}

function usageOf(one: Command): string {
  return code([pathOf(one), ...one.registeredArguments.map(nameOf)].join(" "));
}

/** One that is the command alone says nothing new. */
function examplesOf(one: Command): string[] {
  return (describedOf(one)?.examples ?? []).filter((example) => example !== pathOf(one));
}

/** Of one command of several: the first with options. The help has the others. */
function tellingExamplesOf(one: Command): string[] {
  return examplesOf(one)
    .filter((example) => example.includes(" --"))
    .slice(0, 1);
}

function textOf(one: Command, common: readonly Option[], own: readonly Option[]): string {
  const { description = "", exitCodes = {} } = describedOf(one) ?? {};
  const paragraphs = description.split("\n\n").filter((block) => block !== "");
  const text = paragraphs.map((block) => (block.startsWith("  ") ? listed(block) : block));
  const shared = one.options.filter((option) => isIn(common, option));
  const access = shared.filter((option) => isIn(accessOptions, option));
  const named = access.length === 0 || access.length === accessOptions.length ? without(shared, access) : shared;
  const given = one.registeredArguments.filter((argument) => !isFromList(argument.description));
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

/** The page says once that an id is the one that the list shows. */
function isFromList(description: string): boolean {
  return description === "" || /\bas `paybell .*` shows? (?:it|them)$/.test(description);
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
