import type { Command } from "commander";
import { command } from "../command.ts";
import type { CommandContext } from "../context.ts";
import type { ExitCode } from "../exit-codes.ts";
import { loadServer } from "../load-server.ts";
import type { JsonOption } from "../output.ts";

export function checkCommand(context: CommandContext): Command {
  return command("check", {
    summary: "check whether the service can run with these settings, and name what to fix",
    examples: ["DATABASE_URL=postgres://paybell@db.example/paybell paybell check"],
    exitCodes: { 0: "it can", 1: "something is an error, such as a setting that cannot be read" },
  }).action(async ({ json = false }: JsonOption) => {
    const { runCheck } = await loadServer(context);
    context.conclude((await runCheck(context, { json })) as ExitCode);
  });
}
