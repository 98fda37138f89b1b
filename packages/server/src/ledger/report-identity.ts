import type { Command } from "@paybell/contract";
import type { CompletionRequest } from "../commands/request.ts";
import type { ReportSettings } from "../partners/partner.ts";

type Identity = Pick<ReportSettings, "identity">;

/** What a switch's report is known by here. Where a Sale and its Void have one number, the command tells them apart. */
export function identityOf({ identity }: Identity, externalId: string, command: Command): string {
  return identity === "externalId" ? externalId : `${externalId} #${command}`;
}

/** What may follow what, the more likely original first. */
const originalsOf: Readonly<Partial<Record<Command, readonly Command[]>>> = {
  VOID: ["PREAUTH_COMPLETE", "SALE", "PREAUTH"],
  PREAUTH_COMPLETE: ["PREAUTH"],
  REVERSAL: ["SALE", "PREAUTH", "PREAUTH_COMPLETE", "VOID"],
};

type Following = Pick<CompletionRequest, "command" | "originalExternalId" | "originalCommand">;

/** What the original of a report may be known by, the more likely first; empty where it names none. */
export function originalIdentities(settings: Identity, completion: Following): readonly string[] {
  const { command, originalExternalId = "", originalCommand } = completion;
  if (originalExternalId === "") return [];
  if (settings.identity === "externalId") return [originalExternalId];
  const of = originalCommand ? [originalCommand as Command] : (originalsOf[command] ?? []);
  // What was reported before commands told reports apart is known by its number alone.
  return [...of.map((original) => identityOf(settings, originalExternalId, original)), originalExternalId];
}
