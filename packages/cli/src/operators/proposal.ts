import { Option } from "@commander-js/extra-typings";
import type { Api } from "../client/api.ts";
import { calls } from "../client/connection.ts";
import type { Proposal, TwoAdminRule } from "../client/operator-api.ts";
import { type AnyCommand, command, confirm, group, withConfirmation } from "../shell/command.ts";
import type { CommandContext } from "../shell/context.ts";
import { exitCodes, Failure } from "../shell/failure.ts";
import { makeSecret } from "../shell/files.ts";
import { outOption, wholeNumber } from "../shell/options.ts";
import { fieldColumns, itemsOf, printable, type Result, recordLines } from "../shell/output.ts";

const path = "/operator/v1/proposals";
const rulePath = "/operator/v1/two-admin-rule";

export function proposalCommand(context: CommandContext): AnyCommand {
  const commands = [listCommand(context), confirmCommand(context), withdrawCommand(context), ruleCommand(context)];
  return group("proposal", "see and confirm what takes two admins, where the service is set so", commands);
}

function listCommand(context: CommandContext): AnyCommand {
  const made = command("list", {
    summary: "list the proposals that can be confirmed",
    examples: ["paybell proposal list"],
  });
  return calls(context, made, async (settings) =>
    itemsOf(await readProposals(settings.operator()), [
      ...fieldColumns<Proposal>("id", "proposedBy"),
      ["until", ({ expiresAt }) => expiresAt],
      ["proposal", proposalText],
    ]),
  );
}

function confirmCommand(context: CommandContext): AnyCommand {
  const made = command("confirm", {
    summary: "confirm what another admin proposed, and do it",
    description: "A new key or token is shown only once: --out writes it to a file that only you can read.",
    examples: ["paybell proposal confirm 01a1fc39-e58e-73fb-a49a-dce132454876 --out new-key.json"],
  })
    .argument("<id>", "as `paybell proposal list` shows it")
    .option(...outOption);
  return calls(context, withConfirmation(made), async (settings, options, id) => {
    const api = settings.operator();
    const proposal = (await readProposals(api)).find((one) => one.id === id.toLowerCase());
    if (proposal === undefined) {
      throw new Failure("there is no such proposal: it was confirmed or withdrawn, or has expired.", {
        code: "not_found",
        remedy: "`paybell proposal list` lists them.",
      });
    }
    const what = `${printable(proposal.proposedBy)} proposed: ${printable(proposalText(proposal))}`;
    await confirm(context, options, `It is done at once. ${what}`);
    const secrets = ["secret", "apiKey", "operatorToken"];
    return makeSecret<Readonly<Record<string, unknown>>>(context, options.out, {
      make: async () => credentialsOfAnswer(api, proposal, await confirmed(api, proposal)),
      secrets,
      lines: (made, place) => {
        const rest = Object.entries(made).filter(([name]) => givesSecret(proposal) && !secrets.includes(name));
        return [`Confirmed what ${what}`, ...recordLines(Object.fromEntries(rest)), ...place];
      },
    });
  });
}

function withdrawCommand(context: CommandContext): AnyCommand {
  const made = command("withdraw", {
    summary: "withdraw a proposal, your own or another's",
    examples: ["paybell proposal withdraw 01a1fc39-e58e-73fb-a49a-dce132454876"],
  }).argument("<id>", "as `paybell proposal list` shows it");
  return calls(context, made, async (settings, _, id) => {
    const withdrawn = await settings.operator().post<Proposal>(`${path}/${encodeURIComponent(id)}/withdraw`, {});
    return { value: withdrawn, lines: [`Withdrawn: ${printable(proposalText(withdrawn))}`] };
  });
}

function ruleCommand(context: CommandContext): AnyCommand {
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
  return calls(context, made, async (settings, { minutes, ...options }) => {
    const api = settings.operator();
    if (options.propose && minutes !== undefined) return propose({ api, path: rulePath, input: { minutes } });
    const before = await api.get<TwoAdminRule>(rulePath);
    const rule = minutes === undefined ? before : await api.put<TwoAdminRule>(rulePath, { minutes });
    const isUnchanged = minutes === before.minutes;
    const text =
      rule.minutes === 0 ? "One admin is enough" : `Another admin confirms it within ${rule.minutes} minutes`;
    return {
      value: rule,
      lines: [`${text}${isUnchanged ? ", as before" : ""}.`],
      code: isUnchanged ? exitCodes.negative : exitCodes.ok,
    };
  });
}

async function readProposals(api: Api): Promise<readonly Proposal[]> {
  return (await api.get<{ items: Proposal[] }>(path)).items;
}

const ofPartner = ({ partnerId }: Proposal) => `/operator/v1/partners/${encodeURIComponent(partnerId ?? "")}`;

const confirmedAt = {
  rotateKey: (proposal: Proposal) => `${ofPartner(proposal)}/keys/rotate`,
  addApiKey: (proposal: Proposal) => `${ofPartner(proposal)}/api-keys`,
  addOperator: () => "/operator/v1/operators",
  changePartner: ofPartner,
  changeTwoAdminRule: () => "/operator/v1/two-admin-rule",
} as const;

/** Sends the request that confirms it. */
function confirmed(api: Api, proposal: Proposal): Promise<MadeAnswer> {
  const input = { ...proposal.input, proposal: proposal.id };
  const path = confirmedAt[proposal.action](proposal);
  if (proposal.action === "changePartner") return api.patch(path, input);
  return proposal.action === "changeTwoAdminRule" ? api.put(path, input) : api.post(path, input);
}

/** An answer that has what was made, with its secret. */
type MadeAnswer = Readonly<Record<string, unknown>> & { readonly id: string };

/** The answer as a file of credentials names its values. */
function credentialsOfAnswer(api: Api, { action, partnerId }: Proposal, answer: MadeAnswer) {
  const { id, ...made }: MadeAnswer = answer;
  if (action === "addApiKey") return { partnerId, apiKeyId: id, ...made };
  return action === "addOperator" ? operatorCredentials(api, { id, token: made["token"], ...made }) : answer;
}

/** An operator with their token. In a file of credentials, `id` would be a partner's. */
export function operatorCredentials<Token, Operator extends object>(
  { baseUrl }: Api,
  { id: operatorId, token: operatorToken, ...operator }: Operator & { readonly id: string; readonly token: Token },
) {
  return { baseUrl, operatorToken, operatorId, ...operator };
}

/** Whether the answer to its confirmation shows something once. */
function givesSecret({ action }: Proposal): boolean {
  return action !== "changePartner" && action !== "changeTwoAdminRule";
}

/** As a line: the action with its input. */
function proposalText({ action, partnerId, input }: Proposal): string {
  return `${action} ${partnerId ?? ""} ${JSON.stringify(input)}`.replaceAll(/ {2,}/g, " ");
}

export const proposeOption = ["--propose", "only propose it: another admin confirms it (paybell proposal)"] as const;

/** Proposes the request instead of sending it. @param path of the request itself */
export async function propose({
  api,
  path,
  input,
}: {
  readonly api: Api;
  readonly path: string;
  readonly input: object;
}): Promise<Result> {
  const proposal = await api.post<Proposal>(`${path}/propose`, input);
  const lines = [
    `Proposed as ${proposal.id}. Another admin confirms it until ${proposal.expiresAt}:`,
    `  paybell proposal confirm ${proposal.id}`,
  ];
  return { value: proposal, lines };
}
