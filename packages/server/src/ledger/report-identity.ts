import { type Command, voidableCommands } from "@paybell/contract";
import type { CompletionRequest } from "../commands/request.ts";
import type { ReportSettings } from "../partners/partner.ts";

type Identity = Pick<ReportSettings, "identity">;

/** The key of a switch's report. If a Sale and its Void share a number, the command is part of it. */
export function identityOf({ identity }: Identity, externalId: string, command: Command): string {
  return identity === "externalId" ? externalId : `${externalId} #${command}`;
}

/** The possible originals of a command, the more likely first. */
const originalsOf: Readonly<Partial<Record<Command, readonly Command[]>>> = {
  VOID: ["PREAUTH_COMPLETE", "SALE", "PREAUTH"],
  PREAUTH_COMPLETE: ["PREAUTH"],
  REVERSAL: [...voidableCommands, "VOID"],
};

type Following = Pick<CompletionRequest, "command" | "originalExternalId" | "originalCommand">;

/** The possible keys of a report's original, the more likely first; empty if it names none. */
export function originalIdentities(settings: Identity, completion: Following): readonly string[] {
  const { command, originalExternalId = "", originalCommand } = completion;
  if (originalExternalId === "") return [];
  if (settings.identity === "externalId") return [originalExternalId];
  const originalCommands = originalCommand ? [originalCommand as Command] : (originalsOf[command] ?? []);
  // Reports from before the command was part of the key are stored under the number only.
  return [
    ...originalCommands.map((original) => identityOf(settings, originalExternalId, original)),
    originalExternalId,
  ];
}
