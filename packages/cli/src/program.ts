import { readFileSync } from "node:fs";
import { Command } from "commander";
import { certifyCommand } from "./certify/certify.ts";
import { completeCommand, completionCommand } from "./completion/completion.ts";
import { listenCommand } from "./listen/listen.ts";
import { clearingCommand } from "./money/clearing.ts";
import { batchCommand, eventCommand, reversalCommand, settlementCommand, transactionCommand } from "./money/records.ts";
import { statementCommand } from "./money/statement.ts";
import { endpointCommand } from "./notifications/endpoint.ts";
import { historyCommand } from "./notifications/history.ts";
import { notificationsCommand } from "./notifications/notifications.ts";
import { openCommand } from "./open/open.ts";
import { auditCommand } from "./operators/audit.ts";
import { operatorCommand } from "./operators/operator.ts";
import { proposalCommand } from "./operators/proposal.ts";
import { apiKeyCommand } from "./partners/api-key.ts";
import { keysCommand } from "./partners/keys.ts";
import { partnerCommand } from "./partners/partner.ts";
import { terminalCommand } from "./partners/terminal.ts";
import { acquirerCommand } from "./service/acquirer-command.ts";
import { backupCommand, masterKeyCommand, migrateCommand, verifyCommand } from "./service/database.ts";
import { restoreCommand } from "./service/restore.ts";
import { alertsCommand, checkCommand, sandboxCommand, serveCommand } from "./service/run.ts";
import type { CommandContext } from "./shell/command.ts";
import { exitCodeMeanings } from "./shell/failure.ts";
import { statusCommand } from "./status/status.ts";
import { topCommand } from "./status/top.ts";
import { triggerCommand } from "./trigger/trigger.ts";

const groups = [
  [
    "For a partner's engineer:",
    [listenCommand, triggerCommand, openCommand, certifyCommand, keysCommand, statementCommand],
  ],
  ["For both sides:", [notificationsCommand, endpointCommand, apiKeyCommand]],
  [
    "For the operator:",
    [partnerCommand, terminalCommand, operatorCommand, proposalCommand, statusCommand, topCommand, historyCommand],
  ],
  ["Money:", [transactionCommand, batchCommand, settlementCommand, reversalCommand, eventCommand, clearingCommand]],
  [
    "The service:",
    [
      sandboxCommand,
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
export function program(context: CommandContext, saysUsage = true): Command {
  const root = new Command("paybell")
    .description("Card payment commands, and the notifications that must not be lost.")
    .addHelpText("after", `\nExit codes:\n${exitCodeLines().join("\n")}\n\nExample:\n  $ paybell sandbox`);

  root.version(version(), "-V, --version", "print the version");
  for (const [heading, factories] of groups) {
    root.commandsGroup(heading);
    for (const make of factories) root.addCommand(make(context));
  }
  root.addCommand(completeCommand(context, root), { hidden: true });
  for (const one of withSubcommands(root)) settle(one, context, saysUsage);
  return root;
}

/** Every command ends by throwing, and writes to the given streams: commander would end the process itself. */
function settle(one: Command, { stdout, stderr }: CommandContext, saysUsage: boolean): void {
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

function withSubcommands(one: Command): Command[] {
  return [one, ...one.commands.flatMap(withSubcommands)];
}

function pathOf(one: Command): string {
  return one.parent === null ? "" : `${pathOf(one.parent)}${one.name()} `;
}

function exitCodeLines(): string[] {
  return Object.entries(exitCodeMeanings).map(([code, meaning]) => `  ${code.padEnd(4)} ${meaning}`);
}
