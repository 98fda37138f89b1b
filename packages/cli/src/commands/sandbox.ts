import type { Command } from "commander";
import { command } from "../command.ts";
import type { CommandContext } from "../context.ts";
import type { ExitCode } from "../exit-codes.ts";
import { loadServer } from "../load-server.ts";

export function sandboxCommand(context: CommandContext): Command {
  return command("sandbox", {
    summary: "run the service on localhost, with a partner and its receiver",
    description:
      "On its own PostgreSQL in .paybell/ (PAYBELL_HOME moves it). No card is charged. The keys are in " +
      ".paybell/sandbox.json, where the other commands find them.",
    examples: ["paybell sandbox", "PAYBELL_PORT=7500 paybell sandbox"],
    json: false,
  }).action(async () => {
    const { runSandbox } = await loadServer(context);
    context.conclude((await runSandbox(context)) as ExitCode);
  });
}
