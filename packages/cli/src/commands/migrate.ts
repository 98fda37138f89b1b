import type { Command } from "commander";
import { command } from "../command.ts";
import type { ExitCode } from "../exit-codes.ts";
import type { JsonOption } from "../output.ts";
import { service } from "../service.ts";
import type { World } from "../world.ts";

export function migrateCommand(world: World): Command {
  return command("migrate", {
    summary: "bring the database's schema up to this version",
    description:
      "`serve` does the same when it starts. Run this before, where the role of DATABASE_URL may only read and " +
      "write rows: PAYBELL_MIGRATION_DATABASE_URL names the role that owns the schema, and this command gives the " +
      "other one its rights.",
    examples: ["paybell migrate"],
    exitCodes: { 0: "the schema is this version's", 1: "it could not be changed" },
  }).action(async ({ json = false }: JsonOption) => {
    const { runMigrate } = await service(world);
    world.conclude((await runMigrate(world, { json })) as ExitCode);
  });
}
