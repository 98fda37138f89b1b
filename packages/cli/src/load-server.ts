import { clientVariables } from "./client-variables.ts";
import type { CommandContext } from "./context.ts";
import { Failure } from "./failure.ts";

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

function runsService(nodeVersion: string): boolean {
  const [major = 0, minor = 0] = nodeVersion.split(".").map(Number);
  return major > 22 || (major === 22 && minor >= 22);
}
