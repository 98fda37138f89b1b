import type { Command } from "commander";
import { command, group } from "../command.ts";
import type { CommandContext } from "../context.ts";
import type { ExitCode } from "../exit-codes.ts";
import type { JsonOption } from "../output.ts";
import { service } from "../service.ts";

export function masterKeyCommand(context: CommandContext): Command {
  const made = command("new", {
    summary: "print a new master key; with PAYBELL_KMS, wrapped by the key service",
    examples: ["paybell master-key new > master.key"],
    exitCodes: { 0: "it is printed", 1: "the key service could not be asked" },
    json: false,
  }).action(async () => {
    const { runMasterKeyNew } = await service(context);
    context.conclude((await runMasterKeyNew(context)) as ExitCode);
  });
  const rotate = command("rotate", {
    summary: "seal anew, under PAYBELL_MASTER_KEY, what PAYBELL_MASTER_KEY_OTHERS sealed",
    description:
      "Services go on meanwhile: each must hold both keys. Broken off, it goes on where it was when it is called " +
      "again.",
    examples: ["paybell master-key rotate"],
    exitCodes: { 0: "nothing is left under another key", 1: "something is, or the database could not be read" },
  }).action(async ({ json = false }: JsonOption) => {
    const { runMasterKeyRotate } = await service(context);
    context.conclude((await runMasterKeyRotate(context, { json })) as ExitCode);
  });
  return group("master-key", "make and rotate the key that protects all others", [made, rotate]);
}
