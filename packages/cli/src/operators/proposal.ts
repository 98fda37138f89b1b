import { type Command, Option } from "commander";
import type { Api } from "../client/api.ts";
import { type AccessOptions, readClientSettings, withAccessOptions } from "../client/connection.ts";
import { type CommandContext, command, ends, group } from "../shell/command.ts";
import { type ConfirmOption, confirm, withConfirmation } from "../shell/confirm.ts";
import { type ExitCode, exitCodes, Failure } from "../shell/failure.ts";
import { writePrivateFile } from "../shell/files.ts";
import { wholeNumber } from "../shell/options.ts";
import { columns, fieldColumns, type JsonOption, listed, print, printable, type TableColumn } from "../shell/output.ts";
import {
  confirmed,
  credentialsOfAnswer,
  givesSecret,
  type OpenProposal,
  proposalText,
  propose,
  proposeOption,
} from "./propose.ts";

const path = "/operator/v1/proposals";
const rulePath = "/operator/v1/two-admin-rule";

export function proposalCommand(context: CommandContext): Command {
  const commands = [listCommand(context), confirmCommand(context), withdrawCommand(context), ruleCommand(context)];
  return group("proposal", "see and confirm what takes two admins, where the service is set so", commands);
}

function listCommand(context: CommandContext): Command {
  const made = command("list", {
    summary: "list the proposals that can be confirmed",
    examples: ["paybell proposal list"],
  });
  return withAccessOptions(made).action(
    ends(context, async (options: AccessOptions & JsonOption) => {
      const items = await readProposals((await readClientSettings(context, options)).operator());
      print(context, options, { items }, listed(items, proposalColumns));
      return exitCodes.ok;
    }),
  );
}

const proposalColumns: readonly TableColumn<OpenProposal>[] = [
  ...fieldColumns<OpenProposal>("id", "proposedBy"),
  ["until", ({ expiresAt }) => expiresAt],
  ["proposal", proposalText],
];

interface ConfirmOptions extends AccessOptions, JsonOption, ConfirmOption {
  readonly out?: string;
}

function confirmCommand(context: CommandContext): Command {
  const made = command("confirm", {
    summary: "confirm what another admin proposed, and do it",
    description: "A new key or token is shown only once: --out writes it to a file that only you can read.",
    examples: ["paybell proposal confirm 01a1fc39-e58e-73fb-a49a-dce132454876 --out new-key.json"],
  })
    .argument("<id>", "as `paybell proposal list` shows it")
    .option("--out <file>", "write the new key or token to a new file that only you can read (0600)");
  return withAccessOptions(withConfirmation(made)).action(
    ends(context, (id: string, options: ConfirmOptions) => confirmProposal(context, id, options)),
  );
}

async function confirmProposal(context: CommandContext, id: string, options: ConfirmOptions): Promise<ExitCode> {
  const { out } = options;
  const api = (await readClientSettings(context, options)).operator();
  const proposal = (await readProposals(api)).find((one) => one.id === id.toLowerCase());
  if (proposal === undefined) {
    throw new Failure("there is no such proposal, or it has expired.", {
      code: "not_found",
      remedy: "`paybell proposal list` lists them.",
    });
  }
  const what = `${printable(proposal.proposedBy)} proposed: ${printable(proposalText(proposal))}`;
  await confirm(context, options, `It is done at once. ${what}`);
  const post = async () => {
    return credentialsOfAnswer(api, proposal, await confirmed(api, proposal));
  };
  const made = out === undefined ? await post() : await writePrivateFile(context, out, post);
  const done = `Confirmed what ${what}`;
  if (out !== undefined) {
    const { secret, apiKey, operatorToken, ...shown }: Readonly<Record<string, unknown>> = made;
    print(context, options, { ...shown, file: out }, [done, `It is in ${out}, and nowhere else.`]);
    return exitCodes.ok;
  }
  if (!givesSecret(proposal)) {
    print(context, options, made, [done]);
    return exitCodes.ok;
  }
  const shown = columns(Object.entries(made).map(([name, value]) => [name, printable(String(value))]));
  print(context, options, made, [done, ...shown, "Keep it: it is shown this once."]);
  return exitCodes.ok;
}

function withdrawCommand(context: CommandContext): Command {
  const made = command("withdraw", {
    summary: "withdraw a proposal, your own or another's",
    examples: ["paybell proposal withdraw 01a1fc39-e58e-73fb-a49a-dce132454876"],
  }).argument("<id>", "as `paybell proposal list` shows it");
  return withAccessOptions(made).action(
    ends(context, async (id: string, options: AccessOptions & JsonOption) => {
      const api = (await readClientSettings(context, options)).operator();
      const withdrawn = await api.post<OpenProposal>(`${path}/${encodeURIComponent(id)}/withdraw`, {});
      print(context, options, withdrawn, [`Withdrawn: ${printable(proposalText(withdrawn))}`]);
      return exitCodes.ok;
    }),
  );
}

interface RuleOptions extends AccessOptions, JsonOption {
  readonly minutes?: number;
  readonly propose?: true;
}

interface Rule {
  readonly minutes: number;
}

function ruleCommand(context: CommandContext): Command {
  const made = command("rule", {
    summary: "see or change whether it takes two admins",
    description:
      "It holds for keys, another admin, lower protection of a partner, and the rule itself. Once it asks for two " +
      "admins, two change it: with --propose.",
    examples: ["paybell proposal rule", "paybell proposal rule --minutes 60"],
    exitCodes: { 0: "it is shown, or changed", 1: "nothing changes: it was so before" },
  })
    .addOption(
      new Option("--minutes <minutes>", "the time to confirm; 0: one admin is enough").argParser(
        wholeNumber(0, 10_080),
      ),
    )
    .option(...proposeOption);
  return withAccessOptions(made).action(
    ends(context, async ({ minutes, ...options }: RuleOptions) => {
      const api = (await readClientSettings(context, options)).operator();
      if (options.propose && minutes !== undefined) {
        return await propose(context, { api, path: rulePath, input: { minutes } }, options);
      }
      const before = await api.get<Rule>(rulePath);
      const rule = minutes === undefined ? before : await api.put<Rule>(rulePath, { minutes });
      const isUnchanged = minutes === before.minutes;
      const text =
        rule.minutes === 0 ? "One admin is enough" : `Another admin confirms it within ${rule.minutes} minutes`;
      print(context, options, rule, [`${text}${isUnchanged ? ", as before" : ""}.`]);
      return isUnchanged ? exitCodes.negative : exitCodes.ok;
    }),
  );
}

async function readProposals(api: Api): Promise<readonly OpenProposal[]> {
  return (await api.get<{ items: OpenProposal[] }>(path)).items;
}
