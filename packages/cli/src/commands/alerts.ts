import type { Command } from "commander";
import { command, group } from "../command.ts";
import type { ExitCode } from "../exit-codes.ts";
import type { JsonOption } from "../output.ts";
import { service } from "../service.ts";
import type { World } from "../world.ts";

export function alertsCommand(world: World): Command {
  return group("alerts", "see whether alerts arrive", [testCommand(world)]);
}

function testCommand(world: World): Command {
  return command("test", {
    summary: "send a test alert to every target of these settings: webhook, Slack, mail",
    examples: ["PAYBELL_ALERT_SLACK_URL=https://hooks.example/T0/B0/x paybell alerts test"],
    exitCodes: { 0: "each target took it", 1: "one did not, or there is none" },
  }).action(async ({ json = false }: JsonOption) => {
    const { runAlertsTest } = await service(world);
    world.conclude((await runAlertsTest(world, { json })) as ExitCode);
  });
}
