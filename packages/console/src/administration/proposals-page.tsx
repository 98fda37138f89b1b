import { Alert, Group, NumberInput, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/call.ts";
import type { OperatorToAdd, PartnerApiKeyToMake, PartnerPatch, Proposal, Rotation } from "../api/operations.ts";
import { Confirm } from "../display/confirm.tsx";
import { Secret } from "../display/copied.tsx";
import { Form, numberOf, useForm } from "../display/form.tsx";
import { List, type ListColumn } from "../display/list.tsx";
import { Loaded } from "../display/loaded.tsx";
import { Page, Panel } from "../display/page.tsx";
import { Time } from "../display/time.tsx";
import { partnerColumn } from "../partners/partner.tsx";
import { useSession } from "../session/session.ts";

const names: Readonly<Record<Proposal["action"], string>> = {
  rotateKey: "Rotate a key",
  addApiKey: "Add an API key",
  addOperator: "Add an operator",
  changePartner: "Lower a partner's protection",
  changeTwoAdminRule: "Change the rule of two admins",
};

/** The secret that a confirmation made: it is shown once. */
interface Made {
  readonly title: string;
  readonly secret: string;
}

const refreshMs = 10_000;

/** The rule of two admins, and the proposals that another admin may confirm. */
export function ProposalsPage() {
  const found = useQuery({
    queryKey: ["proposals"],
    queryFn: () => api.listProposals(),
    refetchInterval: refreshMs,
  });
  const [made, setMade] = useState<Made>();
  const columns: readonly ListColumn<Proposal>[] = [
    { name: "Action", show: ({ action }) => names[action], look: "prose" },
    partnerColumn,
    { name: "As proposed", show: ({ input }) => textOf(input), look: "wraps", from: "tablet" },
    { name: "By", show: ({ proposedBy }) => proposedBy, look: "wraps" },
    { name: "Until", show: ({ expiresAt }) => <Time at={expiresAt} />, look: "nowrap", from: "tablet" },
    { name: "Decision", show: (one) => <Decision one={one} onMade={setMade} />, look: "actions" },
  ];
  return (
    <Page title="Proposals">
      <Rule />
      {made !== undefined && (
        <Alert color="accent" variant="light" title={`${made.title}, shown only once`}>
          <Secret label="Secret" value={made.secret} />
        </Alert>
      )}
      <List
        of={found}
        columns={columns}
        keyOf={({ id }) => id}
        empty={[
          "Nothing is proposed",
          <>
            What takes two admins is here, from the proposal until another admin confirms it or its time is over. Keys
            and admins are proposed by the command: <span className="mono">--propose</span>.
          </>,
        ]}
      />
    </Page>
  );
}

function Rule() {
  const found = useQuery({ queryKey: ["two-admin-rule"], queryFn: () => api.getTwoAdminRule() });
  return (
    <Panel title="The rule of two admins">
      <Loaded of={found}>{({ minutes }) => <RuleForm key={minutes} minutes={minutes} />}</Loaded>
    </Panel>
  );
}

function RuleForm({ minutes: current }: { readonly minutes: number }) {
  const queries = useQueryClient();
  const isOn = current > 0;
  const form = useForm(
    { minutes: String(isOn ? current : 60) },
    async ({ minutes }) => {
      if (minutes === String(current)) return "There is nothing to change: the rule is so already.";
      const input = { minutes: numberOf(minutes) };
      await (isOn ? api.proposeTwoAdminRule(input) : api.changeTwoAdminRule(input));
      return isOn ? "It is proposed: another admin confirms it below." : "";
    },
    () => queries.invalidateQueries(),
  );
  return (
    <Form of={form} submit={isOn ? "Propose" : "Change"} isInRow done={form.sending.data}>
      <Text w="100%">
        {isOn
          ? `On: a key, another admin, lower protection of a partner and this rule ${takes(current)}.`
          : "Off: one admin is enough for a key, another admin, and lower protection of a partner."}
      </Text>
      <NumberInput
        w={170}
        label="Minutes to confirm"
        description="0: one admin is enough"
        inputWrapperOrder={["label", "input", "description", "error"]}
        required
        {...form.number("minutes")}
      />
    </Form>
  );
}

function takes(minutes: number): string {
  return `take a second admin within ${minutes} minutes`;
}

/** Another admin confirms; anybody of them withdraws. */
function Decision({ one, onMade }: { readonly one: Proposal; readonly onMade: (made: Made | undefined) => void }) {
  const { session } = useSession();
  return (
    <Group gap="xs" justify="end" wrap="nowrap">
      {session.name === one.proposedBy ? (
        <Text size="xs" c="dimmed">
          yours
        </Text>
      ) : (
        <Confirm
          label="Confirm"
          title={`${names[one.action]}?`}
          text={`${one.proposedBy} proposed it: ${textOf(one.input)}. The audit names you both.`}
          onConfirm={async () => {
            onMade(undefined);
            onMade(await confirmed(one));
          }}
        />
      )}
      <Confirm
        label="Withdraw"
        title="Withdraw the proposal?"
        text={`${names[one.action]}, as ${one.proposedBy} proposed it: nobody can confirm it then.`}
        onConfirm={() => api.withdrawProposal(one.id)}
      />
    </Group>
  );
}

/** Sends the request that was proposed. */
async function confirmed({ id: proposal, action, partnerId, input }: Proposal): Promise<Made | undefined> {
  const partner = partnerId ?? "";
  if (action === "rotateKey") {
    const { secret } = await api.rotateKey(partner, { ...(input as Rotation), proposal });
    return { title: "The new key", secret };
  }
  if (action === "addApiKey") {
    const { apiKey } = await api.addApiKey(partner, { ...(input as PartnerApiKeyToMake), proposal });
    return { title: "The new API key", secret: apiKey };
  }
  if (action === "addOperator") {
    const { name, token } = await api.addOperator({ ...(input as OperatorToAdd), proposal });
    return { title: `The token of ${name}`, secret: token };
  }
  if (action === "changePartner") await api.changePartner(partner, { ...(input as PartnerPatch), proposal });
  else await api.changeTwoAdminRule({ minutes: Number(input["minutes"]), proposal });
  return undefined;
}

/** The values of a request, as a person reads them. */
function textOf(input: Proposal["input"]): string {
  const shown = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  return Object.entries(input)
    .map(([name, value]) => `${name} ${shown(value)}`)
    .join(", ");
}
