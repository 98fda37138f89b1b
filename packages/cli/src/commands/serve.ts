import type { Command } from "commander";
import { command } from "../command.ts";
import type { ExitCode } from "../exit-codes.ts";
import { service } from "../service.ts";
import type { World } from "../world.ts";

export function serveCommand(world: World): Command {
  return command("serve", {
    summary: "run the service: on DATABASE_URL, or on a PostgreSQL of its own",
    examples: ['PAYBELL_MASTER_KEY="$(openssl rand -base64 32)" paybell serve'],
    json: false,
  }).action(async () => {
    const { runServe } = await service(world);
    world.conclude((await runServe(world)) as ExitCode);
  });
}
