import { Button, Group, SegmentedControl, Select, Stack, Text, TextInput } from "@mantine/core";
import { isVoidable } from "@paybell/contract";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { api } from "./api/call.ts";
import type { CommandRequest, SandboxReceiver } from "./api/operations.ts";
import { shownAmount } from "./display/amount.ts";
import { Form, useForm } from "./display/form.tsx";
import { type ListColumn, Table } from "./display/list.tsx";
import { Empty, Failure, Loaded } from "./display/loaded.tsx";
import { Page, Panel } from "./display/page.tsx";
import { State, shownCommand, transactionStates } from "./display/state.tsx";
import { Time } from "./display/time.tsx";
import { pageOf } from "./shell/pages.ts";

const refreshMs = 1_000;

const modes = [
  { value: "accept", label: "Accept" },
  { value: "fail", label: "Fail (503)" },
  { value: "hang", label: "Hang" },
  { value: "refuse", label: "Cut" },
  { value: "reject", label: "Reject (401)" },
];

const cards = [
  { value: "tok_approve", label: "approves" },
  { value: "tok_decline_51", label: "declines: 51, not enough funds" },
  { value: "tok_slow_3000", label: "approves after 3 s" },
  { value: "tok_timeout", label: "never answers: is reversed" },
];

/** The sandbox: make commands, break the receiver, and see the IPNs arrive. */
export function TryPage() {
  const receiver = useQuery({
    queryKey: ["receiver"],
    queryFn: () => api.getSandboxReceiver(),
    refetchInterval: refreshMs,
  });
  return (
    <Page title="Try it">
      <Group align="stretch" gap="md" className="two-columns even">
        <Commands />
        <Receiver receiver={receiver.data} />
      </Group>
      <Loaded of={receiver}>{({ arrived }) => <Arrived items={arrived} />}</Loaded>
    </Page>
  );
}

type Made = Awaited<ReturnType<typeof api.runSandboxCommand>>;

/** What a button asks for: a new command, or one that refers to what was made. */
type Asked = { readonly command: "PREAUTH" | "SETTLEMENT" } | { readonly command: "VOID" | "COMPLETE"; of: Made };

const terminal = { tid: "T0000001", mid: "M00000001" };

function Commands() {
  const [made, setMade] = useState<readonly Made[]>([]);
  const queries = useQueryClient();
  const form = useForm<Record<"amount" | "merchantTransId" | "card.token", string>, Made, Asked>(
    { amount: "150000", merchantTransId: "order-1", "card.token": "tok_approve" },
    (values, asked = undefined) =>
      api.runSandboxCommand({ reqId: crypto.randomUUID(), ...requestOf(asked, values) } as CommandRequest),
    (transaction, { set }) => {
      setMade((before) => [transaction, ...before].slice(0, 5));
      set({ merchantTransId: form.values.merchantTransId.replace(/(?<!\d)\d+$/, (number) => `${Number(number) + 1}`) });
      return queries.invalidateQueries({ queryKey: ["receiver"] });
    },
  );
  const { isPending } = form.sending;
  const ask = (label: string, asked: Asked, size: "xs" | "compact-xs" = "xs") => (
    <Button size={size} variant="default" disabled={isPending} onClick={() => form.send(asked)}>
      {label}
    </Button>
  );
  const columns: readonly ListColumn<Made>[] = [
    { name: "Command", show: (one) => <Link href={pageOf(one)}>{shownCommand(one.command)}</Link> },
    {
      name: "Amount",
      show: (one) => "amount" in one && "currency" in one && shownAmount(String(one.amount), String(one.currency)),
      look: "number",
      from: "tablet",
    },
    { name: "Result", show: ({ status }) => <State {...transactionStates[status]} /> },
    {
      name: "Next",
      show: (one) =>
        one.status === "SUCCESS" && (
          <Group gap={4} justify="end">
            {one.command === "PREAUTH" && ask("Complete", { command: "COMPLETE", of: one }, "compact-xs")}
            {isVoidable(one.command) && ask("Void", { command: "VOID", of: one }, "compact-xs")}
          </Group>
        ),
      look: "actions",
    },
  ];
  return (
    <Panel title="Make a command">
      <Form
        of={form}
        submit="Sale"
        actions={
          <>
            {ask("PreAuth", { command: "PREAUTH" })}
            {ask("Settlement", { command: "SETTLEMENT" })}
          </>
        }
      >
        <Group gap="sm" align="start" grow>
          <TextInput label="Amount in VND" {...form.text("amount")} />
          <TextInput label="Order" {...form.text("merchantTransId")} />
        </Group>
        <Select label="The acquirer" data={cards} {...form.choice("card.token")} />
      </Form>
      {made.length > 0 && <Table items={made} columns={columns} keyOf={({ id }) => id} />}
    </Panel>
  );
}

function requestOf(
  asked: Asked | undefined,
  { "card.token": token, ...values }: Readonly<Record<"amount" | "merchantTransId" | "card.token", string>>,
) {
  if (asked !== undefined && "of" in asked) {
    const { command, of } = asked;
    const original = { transactionId: of.id };
    if (command === "VOID") return { command, ...original };
    return { command: "PREAUTH_COMPLETE", ...original, ...("amount" in of && { amount: of.amount }) };
  }
  if (asked?.command === "SETTLEMENT") return { command: "SETTLEMENT", ...terminal };
  const card = { token, number: "411111******1111", swipeType: "C", aid: "A0000000031010" };
  return { command: asked?.command ?? "SALE", ...terminal, ...values, currency: "VND", card };
}

function Receiver({ receiver }: { readonly receiver: SandboxReceiver | undefined }) {
  const queries = useQueryClient();
  const change = useMutation({
    mutationFn: (mode: SandboxReceiver["mode"]) => api.setSandboxReceiver({ mode }),
    onSuccess: (changed) => queries.setQueryData(["receiver"], changed),
  });
  return (
    <Panel title="The partner's receiver">
      <Stack gap="sm">
        <SegmentedControl
          aria-label="What the receiver does"
          value={receiver?.mode ?? "accept"}
          onChange={(mode) => change.mutate(mode as SandboxReceiver["mode"])}
          data={modes}
        />
        <Text c="dimmed">
          Break it, make a Sale, and watch the retries on the notification's page. After five failures in a row its
          circuit is tripped; make it accept again, and waiting IPNs are delivered.
        </Text>
        {receiver !== undefined && (
          <Group gap="md">
            <Link href="/notifications?state=pending">What waits</Link>
            <Link href={`/partners/${receiver.partnerId}?tab=endpoints`}>Its circuit</Link>
          </Group>
        )}
        {change.isError && <Failure error={change.error} />}
      </Stack>
    </Panel>
  );
}

type Arrival = SandboxReceiver["arrived"][number];

const shownArrivals = 8;

function Arrived({ items }: { readonly items: readonly Arrival[] }) {
  const [chosen, setChosen] = useState<number>();
  const shown = items.find(({ no }) => no === chosen) ?? items[0];
  const columns: readonly ListColumn<Arrival>[] = [
    {
      name: "Answered",
      show: ({ status }) => <State tone={status === 204 ? "good" : "bad"} word={String(status ?? "nothing")} />,
    },
    { name: "Arrived", show: ({ at }) => <Time at={at} />, look: "nowrap" },
    {
      name: "Notification",
      show: ({ notificationId: id }) => <Link href={`/notifications/${id}`}>{id.slice(0, 8)}…</Link>,
      from: "tablet",
    },
    { name: "Attempt", show: ({ attempt }) => attempt, look: "number", from: "tablet" },
    {
      name: "What",
      show: ({ ipn }) =>
        ipn === null
          ? "not opened"
          : `${String(ipn["transaction_type"])} ${shownAmount(text(ipn["amount"]), text(ipn["currency"]))}`,
      look: "wraps",
    },
    {
      name: "Show",
      show: ({ no }) => (
        <Button size="compact-xs" variant="subtle" onClick={() => setChosen(no)}>
          Show
        </Button>
      ),
      look: "actions",
    },
  ];
  return (
    <Panel title="What arrived at the receiver" flush>
      {shown === undefined ? (
        <Empty title="Nothing arrived yet">
          Make a Sale: its IPN is here a moment later, encrypted and decrypted side by side.
        </Empty>
      ) : (
        <>
          <Table items={items.slice(0, shownArrivals)} columns={columns} keyOf={({ no }) => no} current={shown.no} />
          <Group align="stretch" gap="md" className="inside two-columns even">
            <section aria-label="As it was sent">
              <Text fw={600} mb={4}>
                As it was sent
              </Text>
              <pre className="code">{shown.body}</pre>
            </section>
            <section aria-label="Decrypted and verified">
              <Text fw={600} mb={4}>
                Decrypted and verified
              </Text>
              <pre className="code">
                {shown.ipn === null ? "The receiver did not open it." : JSON.stringify(shown.ipn, null, 2)}
              </pre>
            </section>
          </Group>
        </>
      )}
    </Panel>
  );
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
