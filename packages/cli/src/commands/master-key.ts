import type { Command } from "commander";
import { command, group } from "../command.ts";
import type { CommandContext } from "../context.ts";
import type { ExitCode } from "../exit-codes.ts";
import { loadServer } from "../load-server.ts";
import type { JsonOption } from "../output.ts";

export function masterKeyCommand(context: CommandContext): Command {
  const made = command("new", {
    summary: "print a new master key; with PAYBELL_KMS, wrapped by the key service",
    examples: ["paybell master-key new > master.key"],
    exitCodes: { 0: "it is printed", 1: "the key service could not be asked" },
    json: false,
  }).action(async () => {
    const { runMasterKeyNew } = await loadServer(context);
    context.conclude((await runMasterKeyNew(context)) as ExitCode);
  });
  const rotate = command("rotate", {
    summary: "encrypt again, under PAYBELL_MASTER_KEY, what other master keys encrypted",
    description:
      "Services keep running meanwhile; each needs both keys. If it is interrupted, it continues when it is run " +
      "again.",
    examples: ["paybell master-key rotate"],
    exitCodes: { 0: "nothing is left under another key", 1: "something is, or the database could not be read" },
  }).action(async ({ json = false }: JsonOption) => {
    const { runMasterKeyRotate } = await loadServer(context);
    context.conclude((await runMasterKeyRotate(context, { json })) as ExitCode);
  });
  return group("master-key", "make and rotate the key that protects all others", [made, rotate]);
}
