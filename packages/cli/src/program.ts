import { readFileSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Command, CommanderError } from "@commander-js/extra-typings";
import { certifyCommand } from "./certify.ts";
import { completeCommand, completionCommand } from "./completion.ts";
import { listenCommand } from "./listen/listen.ts";
import { clearingCommand } from "./money/clearing.ts";
import { recordCommands } from "./money/records.ts";
import { statementCommand } from "./money/statement.ts";
import { endpointCommand } from "./notifications/endpoint.ts";
import { historyCommand, notificationsCommand } from "./notifications/notifications.ts";
import { openCommand } from "./open/open.ts";
import { auditCommand } from "./operators/audit.ts";
import { operatorCommand } from "./operators/operator.ts";
import { proposalCommand } from "./operators/proposal.ts";
import { apiKeyCommand, keysCommand } from "./partners/keys.ts";
import { partnerCommand } from "./partners/partner.ts";
import { terminalCommand } from "./partners/terminal.ts";
import { acquirerCommand } from "./service/acquirer-command.ts";
import { restoreCommand } from "./service/restore.ts";
import {
  alertsCommand,
  backupCommand,
  checkCommand,
  masterKeyCommand,
  migrateCommand,
  sandboxCommand,
  serveCommand,
  verifyCommand,
} from "./service/service.ts";
import { type AnyCommand, codeLines } from "./shell/command.ts";
import type { CommandContext, HostEnvironment, Output } from "./shell/context.ts";
import {
  type ExitCode,
  exitCodeMeanings,
  exitCodes,
  Failure,
  failureJson,
  failureOf,
  failureText,
  withNext,
} from "./shell/failure.ts";
import { statusCommand } from "./status/status.ts";
import { topCommand } from "./status/top.ts";
import { triggerCommand } from "./trigger.ts";

const groups = [
  [
    "For a partner's engineer:",
    [sandboxCommand, listenCommand, triggerCommand, openCommand, certifyCommand, keysCommand, statementCommand],
  ],
  ["For both sides:", [notificationsCommand, endpointCommand, apiKeyCommand]],
  [
    "For the operator:",
    [partnerCommand, terminalCommand, operatorCommand, proposalCommand, statusCommand, topCommand, historyCommand],
  ],
  ["Money:", [...recordCommands, clearingCommand]],
  [
    "The service:",
    [
      serveCommand,
      checkCommand,
      migrateCommand,
      masterKeyCommand,
      acquirerCommand,
      alertsCommand,
      auditCommand,
      backupCommand,
      verifyCommand,
      restoreCommand,
    ],
  ],
  ["Your shell:", [completionCommand]],
] as const;

/**
 * Every command, in the order of the help. @param saysUsage false if the caller reports usage errors: they are in the
 * thrown error
 */
export function program(context: CommandContext, saysUsage = true): AnyCommand {
  const root: AnyCommand = new Command("paybell")
    .description("Card payment commands, and the notifications that must not be lost.")
    .addHelpText("after", `\nExit codes:\n${codeLines(exitCodeMeanings).join("\n")}\n\nExample:\n  $ paybell sandbox`);

  root.version(version(), "-V, --version", "print the version");
  for (const [heading, factories] of groups) {
    root.commandsGroup(heading);
    for (const make of factories) root.addCommand(make(context));
  }
  root.addCommand(completeCommand(context, root), { hidden: true });
  for (const one of withSubcommands(root)) configure(one, context, saysUsage);
  return root;
}

/** Every command ends by throwing, and writes to the given streams: commander would end the process itself. */
function configure(one: AnyCommand, { stdout, stderr }: CommandContext, saysUsage: boolean): void {
  one
    .exitOverride()
    .showHelpAfterError(`(paybell ${pathOf(one)}--help says how it is used)`)
    .configureOutput({
      writeOut: (text) => void stdout.write(text),
      writeErr: (text) => void (saysUsage && stderr.write(text)),
      getOutHelpWidth: () => stdout.columns ?? 80,
      getErrHelpWidth: () => stderr.columns ?? 80,
    });
}

/** From the sources and from dist/ it is one folder up. */
function version(): string {
  const manifest = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}

function withSubcommands(one: AnyCommand): AnyCommand[] {
  return [one, ...one.commands.flatMap(withSubcommands)];
}

function pathOf(one: AnyCommand): string {
  return one.parent === null ? "" : `${pathOf(one.parent)}${one.name()} `;
}

/** Runs one command line, without `node` and the script's name. Never throws; resolves to the exit code. */
export async function run(args: readonly string[], machine: HostEnvironment): Promise<ExitCode> {
  let code: ExitCode = exitCodes.ok;
  const conclude = (ended: ExitCode) => {
    code = ended;
  };
  const isJson = args.includes("--json");
  const root = program({ ...machine, conclude }, !isJson);
  let unwritten: Failure | undefined;
  machine.stdout.on("error", (error: NodeJS.ErrnoException) => {
    unwritten ??= unwrittenOutput(machine.stdout, error);
  });
  try {
    await root.parseAsync(args, { from: "user" });
    // The stream of a file fails in the turn of the write, and says so at its end.
    await nextTurn();
    if (unwritten !== undefined) throw unwritten;
    return code;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return exitCodes.ok;
      // Without --json commander has printed it already.
      if (!isJson) return exitCodes.usage;
    }
    const thrown = unwritten ?? (error instanceof CommanderError ? wrongUsage(error) : failureOf(error));
    const failure = withNext(thrown, pathIn(root, args));
    // After Ctrl-C the user needs no message.
    if (failure.exitCode === exitCodes.interrupted) return failure.exitCode;
    const text = isJson ? JSON.stringify(failureJson(failure), null, 2) : failureText(failure);
    machine.stderr.write(`${text}\n`);
    return failure.exitCode;
  }
}

/** What is asked for is lost, unless nobody reads it any more, as in `paybell … | head`, or at a closed terminal. */
function unwrittenOutput({ isTTY }: Output, { code, message }: NodeJS.ErrnoException): Failure | undefined {
  if (code === "EPIPE" || isTTY === true) return undefined;
  return new Failure(`the output cannot be written: ${code ?? message}.`, {
    code: "unwritable",
    exitCode: exitCodes.internal,
    remedy: "What it was asked to do may be done: look before you repeat it.",
  });
}

function wrongUsage({ message }: CommanderError): Failure {
  const [what = ""] = message.replace(/^error: /, "").split("\n");
  return new Failure(/[.!?]$/.test(what) ? what : `${what}.`, { code: "bad_usage" });
}

/** The words that name the command, each with a space behind it. */
function pathIn(root: AnyCommand, args: readonly string[]): string {
  let command: AnyCommand | undefined = root;
  let path = "";
  for (const word of args) {
    command = command?.commands.find((one) => one.name() === word);
    if (command === undefined) break;
    path += `${word} `;
  }
  return path;
}
