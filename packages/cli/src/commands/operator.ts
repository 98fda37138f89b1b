import { type Command, InvalidArgumentError } from "commander";
import { command, ends, group } from "../command.ts";
import { type ClientOptions, readClientSettings, withClientOptions } from "../connection.ts";
import type { CommandContext } from "../context.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { writePrivateFile } from "../keys/private-file.ts";
import { columns, type JsonOption, print } from "../output.ts";
import { printable } from "../printable.ts";

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

interface AddOptions extends ClientOptions, JsonOption {
  readonly role: string;
  readonly expiresInDays?: number;
  readonly out?: string;
}

function addCommand(context: CommandContext): Command {
  const made = command("add", {
    summary: "add an operator, and create their token",
    description:
      "A viewer reads; an operator also acts; an admin registers partners, rotates keys and adds operators. The " +
      "token is shown this once: with --out it goes to a file for you alone, in the form that --credentials takes.",
    examples: ["paybell operator add Ada --role admin --out ada.json"],
  })
    .argument("<name>", "who it is")
    .option("--role <role>", "viewer, operator or admin; default viewer", "viewer")
    .option("--expires-in-days <days>", "default 90, at most 366", readDays)
    .option("--out <file>", "write the token to a new file, for its owner alone (0600)");
  return withClientOptions(made).action(
    ends(context, (name: string, options: AddOptions) => add(context, name, options)),
  );
}

function readDays(text: string): number {
  if (/^[0-9]{1,3}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It is a whole number from 1 to 366.");
}

async function add(context: CommandContext, name: string, options: AddOptions): Promise<ExitCode> {
  const { role, expiresInDays, out } = options;
  const api = (await readClientSettings(context, options)).operator();
  const post = async () => {
    const input = { name, role, ...(expiresInDays !== undefined && { expiresInDays }) };
    const { token, ...operator } = await api.post<OperatorRecord & { token: string }>(path, input);
    return { baseUrl: api.baseUrl, operatorToken: token, ...operator };
  };
  const added = out === undefined ? await post() : await writePrivateFile(context, out, post);
  const { operatorToken, ...shown } = added;
  print(context, options, out === undefined ? added : { ...shown, file: out }, [
    `${printable(added.name)} is ${added.role} until ${added.expiresAt}, as ${added.id}.`,
    ...(out === undefined ? [operatorToken, "Keep it: it is shown this once."] : [`The token is in ${out}.`]),
  ]);
  return exitCodes.ok;
}

function listCommand(context: CommandContext): Command {
  const made = command("list", { summary: "list the operators", examples: ["paybell operator list"] });
  return withClientOptions(made).action(
    ends(context, async (options: ClientOptions & JsonOption) => {
      const api = (await readClientSettings(context, options)).operator();
      const { items } = await api.get<{ items: OperatorRecord[] }>(path);
      const rows = items.map((one) => [one.id, printable(one.name), one.role, statusOf(one)]);
      print(context, options, { items }, columns(rows));
      return exitCodes.ok;
    }),
  );
}

function statusOf({ expiresAt, lastUsedAt, revokedAt }: OperatorRecord): string {
  if (revokedAt !== null) return `revoked ${revokedAt}`;
  return `until ${expiresAt}, ${lastUsedAt === null ? "never used" : `last used ${lastUsedAt}`}`;
}

function revokeCommand(context: CommandContext): Command {
  const made = command("revoke", {
    summary: "revoke an operator's token, within two seconds everywhere",
    examples: ["paybell operator revoke 01a1fc39-e58e-73fb-a49a-dce132454876"],
  }).argument("<id>", "as `paybell operator list` shows it");
  return withClientOptions(made).action(
    ends(context, async (id: string, options: ClientOptions & JsonOption) => {
      const api = (await readClientSettings(context, options)).operator();
      const revoked = await api.post<OperatorRecord>(`${path}/${encodeURIComponent(id)}/revoke`, {});
      print(context, options, revoked, [`The token of ${printable(revoked.name)} is revoked.`]);
      return exitCodes.ok;
    }),
  );
}
