import { calls } from "../client/connection.ts";
import { definedOf } from "../client/credentials.ts";
import { meant } from "../client/lists.ts";
import type { NewOperator, Operator } from "../client/operator-api.ts";
import { type AnyCommand, command, confirm, group, withConfirmation } from "../shell/command.ts";
import type { CommandContext } from "../shell/context.ts";
import { exitCodes } from "../shell/failure.ts";
import { makeSecret } from "../shell/files.ts";
import { outOption, wholeNumber } from "../shell/options.ts";
import { fieldColumns, itemsOf, printable } from "../shell/output.ts";
import { operatorCredentials, propose, proposeOption } from "./proposal.ts";

const path = "/operator/v1/operators";

export function operatorCommand(context: CommandContext): AnyCommand {
  return group("operator", "add operators by name, list them, and revoke their tokens", [
    addCommand(context),
    listCommand(context),
    revokeCommand(context),
  ]);
}

function addCommand(context: CommandContext): AnyCommand {
  const made = command("add", {
    summary: "add an operator, and create their token",
    description:
      "A viewer reads; an operator also acts; an admin also registers partners, rotates keys and adds operators. The " +
      "token is shown only once: --out writes it to a file that only you can read, in the form of --credentials.",
    examples: ["paybell operator add Ada --role admin --out ada.json"],
  })
    .argument("<name>", "who it is")
    .option("--role <role>", "viewer, operator or admin", "viewer")
    .option("--expires-in-days <days>", "default 90, at most 366", wholeNumber(1, 366))
    .option(...outOption)
    .option(...proposeOption);
  return calls(context, made, async (settings, { role, expiresInDays, out, ...options }, name) => {
    const api = settings.operator();
    const input = definedOf({ name, role, expiresInDays });
    if (options.propose) return propose({ api, path, input });
    return makeSecret(context, out, {
      make: async () => operatorCredentials(api, await api.post<NewOperator>(path, input)),
      secrets: ["operatorToken"],
      lines: (added, place) => [
        `${printable(added.name)} is ${added.role} until ${added.expiresAt}, as ${added.operatorId}.`,
        ...place,
      ],
    });
  });
}

function listCommand(context: CommandContext): AnyCommand {
  const made = command("list", { summary: "list the operators", examples: ["paybell operator list"] });
  return calls(context, made, async (settings) => {
    const { items } = await settings.operator().get<{ items: Operator[] }>(path);
    return itemsOf(items, [...fieldColumns<Operator>("id", "name", "role"), ["token", statusOf]]);
  });
}

function statusOf({ expiresAt, lastUsedAt, revokedAt }: Operator): string {
  if (revokedAt !== null) return `revoked ${revokedAt}`;
  return `until ${expiresAt}, ${lastUsedAt === null ? "never used" : `last used ${lastUsedAt}`}`;
}

function revokeCommand(context: CommandContext): AnyCommand {
  const made = command("revoke", {
    summary: "revoke an operator's token, within two seconds everywhere",
    examples: ["paybell operator revoke Ada", "paybell operator revoke 01a1fc39-e58e-73fb-a49a-dce132454876"],
    exitCodes: { 0: "it is revoked", 1: "it was revoked already" },
  }).argument("<operator>", "their id or name, as `paybell operator list` shows them");
  return calls(context, withConfirmation(made), async (settings, options, text) => {
    const api = settings.operator();
    const { items } = await api.get<{ items: Operator[] }>(path);
    // Others may have had the name, whose tokens are revoked.
    const named = items.map((one) => ({ ...one, names: one.revokedAt === null ? [one.name] : [] }));
    const { names, ...found } = meant(named, text, "operator with a token", "paybell operator list");
    const token = `The token of ${printable(found.name)}`;
    if (found.revokedAt !== null) {
      return { value: found, lines: [`${token} was revoked already.`], code: exitCodes.negative };
    }
    await confirm(context, options, `${token} (${statusOf(found)}) is refused from then on.`);
    const revoked = await api.post<Operator>(`${path}/${found.id}/revoke`, {});
    return { value: revoked, lines: [`${token} is revoked.`] };
  });
}
