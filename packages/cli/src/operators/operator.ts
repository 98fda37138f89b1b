import type { Command } from "commander";
import { type AccessOptions, readClientSettings, withAccessOptions } from "../client/connection.ts";
import { meant } from "../client/names.ts";
import { type CommandContext, command, ends, group } from "../shell/command.ts";
import { type ConfirmOption, confirm, withConfirmation } from "../shell/confirm.ts";
import { type ExitCode, exitCodes } from "../shell/failure.ts";
import { writePrivateFile } from "../shell/files.ts";
import { wholeNumber } from "../shell/options.ts";
import { fieldColumns, type JsonOption, listed, print, printable, type TableColumn } from "../shell/output.ts";
import { operatorCredentials, propose, proposeOption } from "./propose.ts";

interface OperatorRecord {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  readonly expiresAt: string;
  readonly lastUsedAt: string | null;
  readonly revokedAt: string | null;
}

const path = "/operator/v1/operators";

export function operatorCommand(context: CommandContext): Command {
  return group("operator", "add operators by name, list them, and revoke their tokens", [
    addCommand(context),
    listCommand(context),
    revokeCommand(context),
  ]);
}

interface AddOptions extends AccessOptions, JsonOption {
  readonly role: string;
  readonly expiresInDays?: number;
  readonly out?: string;
  readonly propose?: true;
}

function addCommand(context: CommandContext): Command {
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
    .option("--out <file>", "write the token to a new file that only you can read (0600)")
    .option(...proposeOption);
  return withAccessOptions(made).action(
    ends(context, (name: string, options: AddOptions) => add(context, name, options)),
  );
}

async function add(context: CommandContext, name: string, options: AddOptions): Promise<ExitCode> {
  const { role, expiresInDays, out } = options;
  const api = (await readClientSettings(context, options)).operator();
  const input = { name, role, ...(expiresInDays !== undefined && { expiresInDays }) };
  if (options.propose) return propose(context, { api, path, input }, options);
  const post = async () => {
    return operatorCredentials(api, await api.post<OperatorRecord & { token: string }>(path, input));
  };
  const added = out === undefined ? await post() : await writePrivateFile(context, out, post);
  const { operatorToken, ...shown } = added;
  print(context, options, out === undefined ? added : { ...shown, file: out }, [
    `${printable(added.name)} is ${added.role} until ${added.expiresAt}, as ${added.operatorId}.`,
    ...(out === undefined ? [operatorToken, "Keep it: it is shown only once."] : [`The token is in ${out}.`]),
  ]);
  return exitCodes.ok;
}

function listCommand(context: CommandContext): Command {
  const made = command("list", { summary: "list the operators", examples: ["paybell operator list"] });
  return withAccessOptions(made).action(
    ends(context, async (options: AccessOptions & JsonOption) => {
      const api = (await readClientSettings(context, options)).operator();
      const { items } = await api.get<{ items: OperatorRecord[] }>(path);
      print(context, options, { items }, listed(items, operatorColumns));
      return exitCodes.ok;
    }),
  );
}

const operatorColumns: readonly TableColumn<OperatorRecord>[] = [
  ...fieldColumns<OperatorRecord>("id", "name", "role"),
  ["token", statusOf],
];

function statusOf({ expiresAt, lastUsedAt, revokedAt }: OperatorRecord): string {
  if (revokedAt !== null) return `revoked ${revokedAt}`;
  return `until ${expiresAt}, ${lastUsedAt === null ? "never used" : `last used ${lastUsedAt}`}`;
}

function revokeCommand(context: CommandContext): Command {
  const made = command("revoke", {
    summary: "revoke an operator's token, within two seconds everywhere",
    examples: ["paybell operator revoke Ada", "paybell operator revoke 01a1fc39-e58e-73fb-a49a-dce132454876"],
    exitCodes: { 0: "it is revoked", 1: "it was revoked already" },
  }).argument("<operator>", "their id or name, as `paybell operator list` shows them");
  return withAccessOptions(withConfirmation(made)).action(
    ends(context, async (text: string, options: AccessOptions & JsonOption & ConfirmOption) => {
      const api = (await readClientSettings(context, options)).operator();
      const { items } = await api.get<{ items: OperatorRecord[] }>(path);
      // Others may have had the name, whose tokens are revoked.
      const named = items.map((one) => ({ ...one, names: one.revokedAt === null ? [one.name] : [] }));
      const found = meant(named, text, "operator with a token", "paybell operator list");
      if (found.revokedAt !== null) {
        print(context, options, { ...found, names: undefined }, [
          `The token of ${printable(found.name)} was revoked already.`,
        ]);
        return exitCodes.negative;
      }
      await confirm(
        context,
        options,
        `The token of ${printable(found.name)} (${statusOf(found)}) is refused from then on.`,
      );
      const revoked = await api.post<OperatorRecord>(`${path}/${found.id}/revoke`, {});
      print(context, options, revoked, [`The token of ${printable(revoked.name)} is revoked.`]);
      return exitCodes.ok;
    }),
  );
}
