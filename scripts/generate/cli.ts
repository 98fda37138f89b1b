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
  const [forPartner, forOperator] = [isForPartner, (heading: string) => !isForPartner(heading)].map((isFor) =>
    root.commands.filter((one) => isFor(one.helpGroup())),
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
    "common-options": optionTable([...commonOptions.values()].map(optionRow)),
    partner: commandReference(forPartner),
    operator: commandReference(forOperator),
  });
}

/** What a partner runs. All else stands under "For the operator", which the site of partners leaves out. */
function isForPartner(heading: string): boolean {
  return ["For a partner's engineer:", "For both sides:", "Your shell:"].includes(heading);
}

const variables = [...Object.entries(clientVariables), ["PAYBELL_OPERATOR_TOKEN", "The operator's token"]] as const;

/** Without the column of defaults where there are none. */
function optionTable(rows: readonly string[][]): string {
  const columns = rows.every(([, , value]) => value === "") ? 2 : 3;
  const narrow = rows.map((row) => row.slice(0, columns));
  return table(["Option", "Meaning", "Default"].slice(0, columns), narrow);
}

/** The options that say which service is called, as whom, and in which form the output is. */
const commonOptions: ReadonlyMap<string, Option> = new Map(
  withSealing(withAccessOptions(command("", { summary: "", examples: [] }))).options.map((one) => [one.flags, one]),
);

/** Those of nearly every command that calls the service. */
const usualOptions = longNames(withAccessOptions(command("", { summary: "", examples: [] })).options);

/** A list of all, then each. */
function commandReference(commands: readonly Command[] = []): string {
  const all = commands.flatMap(leaves);
  const rows = all.map((one) => [`[${pathOf(one)}](#${anchorOf(one)})`, one.summary()]);
  const blocks = all.flatMap((one, index) => commandBlocks(one, all.slice(0, index)));
  return [table(["Command", "What it does"], rows), ...blocks].join("\n\n");
}

function isCommon({ flags, description }: Option): boolean {
  return commonOptions.get(flags)?.description === description;
}

function commandBlocks(one: Command, before: readonly Command[]): string[] {
  const { description = "", examples = [], exitCodes = {} } = describedOf(one) ?? {};
  const codes = Object.entries(exitCodes).map(([exitCode, meaning]) => `${exitCode}: ${meaning}.`);
  const own = one.options.filter((option) => !isCommon(option));
  const like = before.find((other) => other.options.filter((option) => isIn(own, option)).length >= alikeMin);
  const rows = [
    ...one.registeredArguments.map(argumentRow),
    ...own.filter((option) => !isIn(like?.options ?? [], option)).map(optionRow),
  ];
  const common = longNames(one.options.filter(isCommon));
  return [
    `### ${pathOf(one)}`,
    `${sentence(one.summary())}.`,
    ...paragraphs(description),
    codeBlock("sh", examples.join("\n")),
    ...(rows.length === 0 ? [] : [optionTable(rows)]),
    ...(like === undefined ? [] : [optionsOf(like, own)]),
    ...(common === "" || common === usualOptions ? [] : [`[Common options](#common-options): ${common}.`]),
    ...(codes.length === 0 ? [] : [`Exit codes. ${codes.join(" ")}`]),
  ];
}

/** From this many options on that another command has too, the reader finds them there. */
const alikeMin = 8;

function optionsOf(like: Command, own: readonly Option[]): string {
  const others = longNames(like.options.filter((option) => !isCommon(option) && !isIn(own, option)));
  const except = others === "" ? "" : `, but not ${others}`;
  return `It also has the options of [${pathOf(like)}](#${anchorOf(like)})${except}.`;
}

function isIn(options: readonly Option[], { flags, description }: Option): boolean {
  return options.some((option) => option.flags === flags && option.description === description);
}

function longNames(options: readonly Option[]): string {
  return options.map(({ long }) => code(long ?? "")).join(", ");
}

/** Lists in a description are indented, and shown as in the help. */
function paragraphs(description: string): string[] {
  const blocks = description.split("\n\n").filter((block) => block !== "");
  return blocks.map((block) => (block.startsWith("  ") ? codeBlock("text", block) : block));
}

function argumentRow(argument: Argument): string[] {
  const name = argument.variadic ? `${argument.name()}...` : argument.name();
  return [code(argument.required ? `<${name}>` : `[${name}]`), argument.description, ""];
}

function optionRow({ flags, description, argChoices, defaultValue, negate }: Option): string[] {
  const choices = argChoices === undefined ? "" : `; one of ${argChoices.map(code).join(", ")}`;
  const value = defaultValue === undefined || negate ? "" : code(String(defaultValue));
  return [code(flags), `${description}${choices}`, value];
}

function leaves(one: Command): Command[] {
  return one.commands.length === 0 ? [one] : one.commands.flatMap(leaves);
}

function pathOf(one: Command): string {
  return one.parent === null ? one.name() : `${pathOf(one.parent)} ${one.name()}`;
}

function anchorOf(one: Command): string {
  return pathOf(one).replaceAll(" ", "-");
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}
