import type { Command, OptionValues } from "@commander-js/extra-typings";
import { clientVariables } from "../client/credentials.ts";
import { type AnyCommand, acts } from "../shell/command.ts";
import type { CommandContext } from "../shell/context.ts";
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

/** A command that the service's package runs: it gets the package, the options, and the arguments. */
export function runs<Args extends unknown[], Options extends OptionValues>(
  context: CommandContext,
  made: Command<Args, Options>,
  run: (
    server: Awaited<ReturnType<typeof loadServer>>,
    options: Options & JsonOption,
    ...args: Args
  ) => Promise<number>,
): AnyCommand {
  return acts(
    context,
    made,
    async (options, ...args) => (await run(await loadServer(context), options, ...args)) as ExitCode,
    "finishes",
  );
}

function runsService(nodeVersion: string): boolean {
  const [major = 0, minor = 0] = nodeVersion.split(".").map(Number);
  return major > 22 || (major === 22 && minor >= 22);
}
