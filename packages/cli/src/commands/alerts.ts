import type { Command } from "commander";
import { command, group } from "../command.ts";
import type { CommandContext } from "../context.ts";
import type { ExitCode } from "../exit-codes.ts";
import { loadServer } from "../load-server.ts";
import type { JsonOption } from "../output.ts";

export function alertsCommand(context: CommandContext): Command {
  return group("alerts", "see whether alerts arrive", [testCommand(context)]);
}

function testCommand(context: CommandContext): Command {
  return command("test", {
    summary: "send a test alert to every target of these settings: webhook, Slack, mail",
    examples: ["PAYBELL_ALERT_SLACK_URL=https://hooks.example/T0/B0/x paybell alerts test"],
    exitCodes: { 0: "each target accepted it", 1: "one did not, or there is none" },
  }).action(async ({ json = false }: JsonOption) => {
    const { runAlertsTest } = await loadServer(context);
    context.conclude((await runAlertsTest(context, { json })) as ExitCode);
  });
}
