import { readFileSync } from "node:fs";
import { Command } from "commander";
import { acquirerCommand } from "./commands/acquirer.ts";
import { alertsCommand } from "./commands/alerts.ts";
import { apiKeyCommand } from "./commands/api-key.ts";
import { auditCommand } from "./commands/audit.ts";
import { backupCommand, verifyCommand } from "./commands/backup.ts";
import { certifyCommand } from "./commands/certify.ts";
import { checkCommand } from "./commands/check.ts";
import { clearingCommand } from "./commands/clearing.ts";
import { completeCommand, completionCommand } from "./commands/completion.ts";
import { endpointCommand } from "./commands/endpoint.ts";
import { historyCommand } from "./commands/history.ts";
import { keysCommand } from "./commands/keys.ts";
import { listenCommand } from "./commands/listen.ts";
import { masterKeyCommand } from "./commands/master-key.ts";
import { migrateCommand } from "./commands/migrate.ts";
import { notificationsCommand } from "./commands/notifications.ts";
import { openCommand } from "./commands/open.ts";
import { operatorCommand } from "./commands/operator.ts";
import { partnerCommand } from "./commands/partner.ts";
import { proposalCommand } from "./commands/proposal.ts";
import {
  batchCommand,
  eventCommand,
  reversalCommand,
  settlementCommand,
  transactionCommand,
} from "./commands/records.ts";
import { restoreCommand } from "./commands/restore.ts";
import { sandboxCommand } from "./commands/sandbox.ts";
import { serveCommand } from "./commands/serve.ts";
import { statementCommand } from "./commands/statement.ts";
import { statusCommand } from "./commands/status.ts";
import { terminalCommand } from "./commands/terminal.ts";
import { topCommand } from "./commands/top.ts";
import { triggerCommand } from "./commands/trigger.ts";
import type { CommandContext } from "./context.ts";
import { exitCodeMeanings } from "./exit-codes.ts";

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
