import { type Command, Option } from "commander";
import { command } from "../command.ts";
import type { CommandContext } from "../context.ts";
import type { ExitCode } from "../exit-codes.ts";
import { loadServer } from "../load-server.ts";

const roles = ["all", "api", "delivery"] as const;

export function serveCommand(context: CommandContext): Command {
  return command("serve", {
    summary: "run the service on DATABASE_URL",
    exitCodes: {
      0: "stopped by SIGTERM, SIGINT or SIGHUP",
      1: "it could not start, for example because a setting is wrong",
    },
    examples: ["DATABASE_URL=postgres://paybell@db.example/paybell paybell serve", "paybell serve --role delivery"],
    json: false,
  })
    .addOption(
      new Option("--role <role>", "api: only commands and reports; delivery: only notifications")
        .choices(roles)
        .default("all"),
    )
    .action(async ({ role }: { readonly role: (typeof roles)[number] }) => {
      const { runServe } = await loadServer(context);
      context.conclude((await runServe(context, role)) as ExitCode);
    });
}
