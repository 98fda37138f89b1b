import type { Api } from "../client/api.ts";
import type { CommandContext } from "../shell/command.ts";
import { type ExitCode, exitCodes } from "../shell/failure.ts";
import { type JsonOption, print } from "../shell/output.ts";

/** A proposal of an admin, as the operator API answers it. */
export interface OpenProposal {
  readonly id: string;
  readonly action: keyof typeof confirmedAt;
  readonly partnerId: string | null;
  readonly input: Readonly<Record<string, unknown>>;
  readonly proposedBy: string;
  readonly expiresAt: string;
}

const ofPartner = ({ partnerId }: OpenProposal) => `/operator/v1/partners/${encodeURIComponent(partnerId ?? "")}`;

const confirmedAt = {
  rotateKey: (proposal: OpenProposal) => `${ofPartner(proposal)}/keys/rotate`,
  addApiKey: (proposal: OpenProposal) => `${ofPartner(proposal)}/api-keys`,
  addOperator: () => "/operator/v1/operators",
  changePartner: ofPartner,
  changeTwoAdminRule: () => "/operator/v1/two-admin-rule",
} as const;

/** Sends the request that confirms it. */
export function confirmed(api: Api, proposal: OpenProposal): Promise<MadeAnswer> {
  const input = { ...proposal.input, proposal: proposal.id };
  const path = confirmedAt[proposal.action](proposal);
  if (proposal.action === "changePartner") return api.patch(path, input);
  return proposal.action === "changeTwoAdminRule" ? api.put(path, input) : api.post(path, input);
}

/** An answer that has what was made, with its secret. */
export type MadeAnswer = Readonly<Record<string, unknown>> & { readonly id: string };

/** The answer as a file of credentials names its values. */
export function credentialsOfAnswer(api: Api, { action, partnerId }: OpenProposal, answer: MadeAnswer) {
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
export function givesSecret({ action }: OpenProposal): boolean {
  return action !== "changePartner" && action !== "changeTwoAdminRule";
}

/** As a line: the action with its input. */
export function proposalText({ action, partnerId, input }: OpenProposal): string {
  return `${action} ${partnerId ?? ""} ${JSON.stringify(input)}`.replaceAll(/ {2,}/g, " ");
}

export const proposeOption = ["--propose", "only propose it: another admin confirms it (paybell proposal)"] as const;

/** Proposes the request instead of sending it. @param path of the request itself */
export async function propose(
  context: CommandContext,
  { api, path, input }: { readonly api: Api; readonly path: string; readonly input: object },
  options: JsonOption,
): Promise<ExitCode> {
  const proposal = await api.post<OpenProposal>(`${path}/propose`, input);
  print(context, options, proposal, [
    `Proposed as ${proposal.id}. Another admin confirms it until ${proposal.expiresAt}:`,
    `  paybell proposal confirm ${proposal.id}`,
  ]);
  return exitCodes.ok;
}
