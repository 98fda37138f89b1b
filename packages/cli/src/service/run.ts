import { type Command, Option } from "commander";
import { clientVariables } from "../client/credentials.ts";
import { type CommandContext, command, group } from "../shell/command.ts";
import { type ExitCode, Failure } from "../shell/failure.ts";
import type { JsonOption } from "../shell/output.ts";

/** The service lives in a package of its own: a partner's machine needs none of it. */
export async function loadServer({ process }: Pick<CommandContext, "process">) {
  if (!runsService(process.versions.node))
    throw new Failure(`the service needs Node 22.22 or newer, and this is ${process.versions.node}.`, {
      code: "node_too_old",
      remedy: "Install a newer Node. The commands for partners and operators run on this one.",
    });
  // The service refuses every PAYBELL_ name that it does not know, and these are ours.
  for (const name of Object.keys(clientVariables)) delete process.env[name];
  try {
    return await import("@paybell/server");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new Failure("this command runs the service, which is not installed.", {
      code: "server_not_installed",
      remedy: "npm install @paybell/server",
    });
  }
}

/** The action of a command that the service's package runs. */
export function runs<Args extends unknown[]>(
  context: CommandContext,
  run: (server: Awaited<ReturnType<typeof loadServer>>, ...args: Args) => Promise<number>,
): (...args: Args) => Promise<void> {
  return async (...args) => context.conclude((await run(await loadServer(context), ...args)) as ExitCode);
}

function runsService(nodeVersion: string): boolean {
  const [major = 0, minor = 0] = nodeVersion.split(".").map(Number);
  return major > 22 || (major === 22 && minor >= 22);
}

export function sandboxCommand(context: CommandContext): Command {
  return command("sandbox", {
    summary: "run the service on localhost, with a partner and its receiver",
    description:
      "On its own PostgreSQL in .paybell/ (PAYBELL_HOME moves it). No card is charged. The keys are in " +
      ".paybell/sandbox.json, where the other commands find them.",
    examples: ["paybell sandbox", "PAYBELL_PORT=7500 paybell sandbox"],
    json: false,
  }).action(runs(context, ({ runSandbox }) => runSandbox(context)));
}

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

export function checkCommand(context: CommandContext): Command {
  return command("check", {
    summary: "check whether the service can run with these settings, and name what to fix",
    examples: ["DATABASE_URL=postgres://paybell@db.example/paybell paybell check"],
    exitCodes: { 0: "it can", 1: "something is an error, such as a setting that cannot be read" },
  }).action(runs(context, ({ runCheck }, { json = false }: JsonOption) => runCheck(context, { json })));
}

export function alertsCommand(context: CommandContext): Command {
  return group("alerts", "see whether alerts arrive", [testCommand(context)]);
}

function testCommand(context: CommandContext): Command {
  return command("test", {
    summary: "send a test alert to every target of these settings: webhook, Slack, mail",
    examples: ["PAYBELL_ALERT_SLACK_URL=https://hooks.example/T0/B0/x paybell alerts test"],
    exitCodes: { 0: "each target accepted it", 1: "one did not, or there is none" },
  }).action(runs(context, ({ runAlertsTest }, { json = false }: JsonOption) => runAlertsTest(context, { json })));
}
