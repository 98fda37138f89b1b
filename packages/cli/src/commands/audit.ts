import type { Command } from "commander";
import { command, group } from "../command.ts";
import type { ExitCode } from "../exit-codes.ts";
import type { JsonOption } from "../output.ts";
import { service } from "../service.ts";
import type { World } from "../world.ts";

export function auditCommand(world: World): Command {
  const verify = command("verify", {
    summary: "say whether the audit is whole: every entry follows from the one before it",
    description:
      "It reads the database of DATABASE_URL. Note the last hash elsewhere: with it you see later whether entries " +
      "were cut off at the end.",
    examples: ["DATABASE_URL=postgres://paybell@db.example/paybell paybell audit verify"],
    exitCodes: { 0: "it is whole", 1: "an entry was changed or taken out, or the database could not be read" },
  }).action(async ({ json = false }: JsonOption) => {
    const { runAuditVerify } = await service(world);
    world.conclude((await runAuditVerify(world, { json })) as ExitCode);
  });
  return group("audit", "look after the record of who did what", [verify]);
}
