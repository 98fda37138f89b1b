import { clientVariables } from "../../packages/cli/src/client-variables.ts";
import { describedOf } from "../../packages/cli/src/command.ts";
import type { CommandContext } from "../../packages/cli/src/context.ts";
import { exitCodeMeanings } from "../../packages/cli/src/exit-codes.ts";
import { program } from "../../packages/cli/src/program.ts";
import { code, codeBlock, type GeneratedFile, markdown, table } from "./document.ts";

type Command = ReturnType<typeof program>;
type Argument = Command["registeredArguments"][number];
type Option = Command["options"][number];

/** Every command, as its own `--help` tells it. */
export function cliReference(): GeneratedFile {
  // Commands are described and not run, so the context is never used.
  const root = program({ stdout: process.stdout, stderr: process.stderr, process } as unknown as CommandContext);
  const commands = leaves(root);
  return {
    path: "docs/reference/cli.md",
    text: markdown(
      "The command `paybell`",
      "Every command has `--help`; `paybell --version` prints the version. With `--json` it prints one JSON " +
        'document to stdout, and an error as `{"error": {code, message, remedy}}` to stderr. Colours and progress ' +
        "are shown only in a terminal; `NO_COLOR` turns colours off.",
      table(
        ["Command", "What it does"],
        commands.map((one) => [`[${pathOf(one)}](#${anchorOf(one)})`, one.summary()]),
      ),
      "## Exit codes",
      table(
        ["Code", "Meaning"],
        Object.entries(exitCodeMeanings).map(([exitCode, meaning]) => [exitCode, sentence(meaning)]),
      ),
      "## Credentials",
      "A value without an option comes from the environment, then from a file: that of `--credentials`, otherwise " +
        "`.paybell/sandbox.json` in this folder (`PAYBELL_HOME` moves it). The keys of the sandbox are never sent to " +
        "another service. No key is an option, because a process list shows options.",
      'The file is JSON: `{"baseUrl", "apiKey", "operatorToken", "partnerId", "encryptionKey", "signingKey", ' +
        '"webhookSecret", "cipher", "encoding", "signing", "wireNames"}`, as far as they are needed. ' +
        "`paybell partner add --out` writes such a file. A key that is being rotated is a list of its versions: " +
        '`[{"id": "…", "key": "…"}]`.',
      table(
        ["Variable", "Meaning"],
        variables.map(([name, meaning]) => [code(name), meaning]),
      ),
      ...commands.flatMap(commandBlocks),
    ),
  };
}

const variables = [...Object.entries(clientVariables), ["PAYBELL_OPERATOR_TOKEN", "The operator's token"]] as const;

function commandBlocks(one: Command): string[] {
  const { description = "", examples = [], exitCodes = {} } = describedOf(one) ?? {};
  const codes = Object.entries(exitCodes).map(([exitCode, meaning]) => `${exitCode}: ${meaning}.`);
  const rows = [...one.registeredArguments.map(argumentRow), ...one.options.map(optionRow)];
  return [
    `## ${pathOf(one)}`,
    `${sentence(one.summary())}.`,
    ...paragraphs(description),
    codeBlock("sh", examples.join("\n")),
    ...(rows.length === 0 ? [] : [table(["Option", "Meaning", "Default"], rows)]),
    ...(codes.length === 0 ? [] : [`Exit codes. ${codes.join(" ")}`]),
  ];
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
  const choices = argChoices === undefined ? "" : `: ${argChoices.join(", ")}`;
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
