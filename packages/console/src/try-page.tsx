import { Button, Group, SegmentedControl, Select, Stack, Text, TextInput } from "@mantine/core";
import { isVoidable } from "@paybell/contract";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { api, CallError } from "./api/call.ts";
import type { CommandRequest, SandboxReceiver } from "./api/operations.ts";
import { shownAmount } from "./display/amount.ts";
import { Failure } from "./display/failure.tsx";
import { Loading } from "./display/list.tsx";
import { Empty, Page, Panel } from "./display/page.tsx";
import { State } from "./display/state.tsx";
import { Time } from "./display/time.tsx";
import { pageOf } from "./shell/pages.ts";

const lookEveryMs = 1_000;

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
    refetchInterval: lookEveryMs,
  });
  return (
    <Page title="Try it">
      <Group align="stretch" gap="md" className="two-columns even">
        <Commands />
        <Receiver receiver={receiver.data} />
      </Group>
      {receiver.isError && <Failure error={receiver.error} />}
      {receiver.isPending ? <Loading /> : <Arrived items={receiver.data?.arrived ?? []} />}
    </Page>
  );
}

type Made = Awaited<ReturnType<typeof api.runSandboxCommand>>;

function Commands() {
  const [amount, setAmount] = useState("150000");
  const [order, setOrder] = useState("order-1");
  const [card, setCard] = useState("tok_approve");
  const [made, setMade] = useState<readonly Made[]>([]);
  const queries = useQueryClient();
  const run = useMutation({
    mutationFn: (command: CommandRequest) => api.runSandboxCommand(command),
    onSuccess: (transaction) => {
      setMade((before) => [transaction, ...before].slice(0, 5));
      setOrder((before) => before.replace(/(?<!\d)\d+$/, (number) => String(Number(number) + 1)));
      return queries.invalidateQueries({ queryKey: ["receiver"] });
    },
  });
  const fields = run.error instanceof CallError ? run.error.fields : {};
  const isAtField = Object.keys(fields).some((name) => ["amount", "merchantTransId", "card.token"].includes(name));
  const reqId = () => crypto.randomUUID();
  const pay = (command: "SALE" | "PREAUTH") =>
    run.mutate({
      command,
      reqId: reqId(),
      amount,
      currency: "VND",
      tid: "T0000001",
      mid: "M00000001",
      merchantTransId: order,
      card: { token: card, number: "411111******1111", swipeType: "C", aid: "A0000000031010" },
    } as CommandRequest);
  return (
    <Panel title="Make a command">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          pay("SALE");
        }}
      >
        <Stack gap="sm">
          <Group gap="sm" align="start" grow>
            <TextInput
              size="xs"
              label="Amount in VND"
              value={amount}
              onChange={(event) => setAmount(event.currentTarget.value)}
              error={fields["amount"]}
            />
            <TextInput
              size="xs"
              label="Order"
              value={order}
              onChange={(event) => setOrder(event.currentTarget.value)}
              error={fields["merchantTransId"]}
            />
          </Group>
          <Select
            size="xs"
            label="The acquirer"
            data={cards}
            value={card}
            onChange={(value) => setCard(value ?? "tok_approve")}
            allowDeselect={false}
            error={fields["card.token"]}
          />
          <Group gap="xs">
            <Button size="xs" type="submit" loading={run.isPending}>
              Sale
            </Button>
            <Button size="xs" variant="default" disabled={run.isPending} onClick={() => pay("PREAUTH")}>
              PreAuth
            </Button>
            <Button
              size="xs"
              variant="default"
              disabled={run.isPending}
              onClick={() =>
                run.mutate({
                  command: "SETTLEMENT",
                  reqId: reqId(),
                  tid: "T0000001",
                  mid: "M00000001",
                } as CommandRequest)
              }
            >
              Settlement
            </Button>
          </Group>
          {run.isError && !isAtField && <Failure error={run.error} />}
          {made.length > 0 && (
            <table className="dense-table">
              <thead>
                <tr>
                  <th scope="col">Command</th>
                  <th scope="col" className="number">
                    Amount
                  </th>
                  <th scope="col">Result</th>
                  <th scope="col">
                    <span className="unseen">Next</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {made.map((one) => (
                  <MadeRow key={one.id} one={one} isPending={run.isPending} onRun={(command) => run.mutate(command)} />
                ))}
              </tbody>
            </table>
          )}
        </Stack>
      </form>
    </Panel>
  );
}

function MadeRow({
  one,
  isPending,
  onRun,
}: {
  readonly one: Made;
  readonly isPending: boolean;
  readonly onRun: (command: CommandRequest) => void;
}) {
  const next = (command: "VOID" | "PREAUTH_COMPLETE") =>
    onRun({
      command,
      reqId: crypto.randomUUID(),
      transactionId: one.id,
      ...(command === "PREAUTH_COMPLETE" && "amount" in one && { amount: one.amount }),
    } as CommandRequest);
  const isGood = one.status === "SUCCESS";
  return (
    <tr>
      <td>
        <Link href={pageOf(one)}>{one.command.replace("_", "-")}</Link>
      </td>
      <td className="number">
        {"amount" in one && "currency" in one ? shownAmount(String(one.amount), String(one.currency)) : ""}
      </td>
      <td>
        <State
          tone={isGood ? "good" : one.status === "INIT" ? "wait" : "bad"}
          word={isGood ? "Success" : one.status === "INIT" ? "Under way" : "Declined"}
        />
      </td>
      <td>
        <Group gap={4} justify="end">
          {isGood && one.command === "PREAUTH" && (
            <Button size="compact-xs" variant="default" disabled={isPending} onClick={() => next("PREAUTH_COMPLETE")}>
              Complete
            </Button>
          )}
          {isGood && isVoidable(one.command) && (
            <Button size="compact-xs" variant="default" disabled={isPending} onClick={() => next("VOID")}>
              Void
            </Button>
          )}
        </Group>
      </td>
    </tr>
  );
}

function Receiver({ receiver }: { readonly receiver: SandboxReceiver | undefined }) {
  const queries = useQueryClient();
  const turn = useMutation({
    mutationFn: (mode: SandboxReceiver["mode"]) => api.setSandboxReceiver({ mode }),
    onSuccess: (changed) => queries.setQueryData(["receiver"], changed),
  });
  return (
    <Panel title="The partner's receiver">
      <Stack gap="sm">
        <SegmentedControl
          size="xs"
          aria-label="What the receiver does"
          value={receiver?.mode ?? "accept"}
          onChange={(mode) => turn.mutate(mode as SandboxReceiver["mode"])}
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
        {turn.isError && <Failure error={turn.error} />}
      </Stack>
    </Panel>
  );
}

function Arrived({ items }: { readonly items: SandboxReceiver["arrived"] }) {
  const [chosen, setChosen] = useState<number>();
  const shown = items.find(({ no }) => no === chosen) ?? items[0];
  return (
    <Panel title="What arrived at the receiver" flush>
      {shown === undefined ? (
        <Empty title="Nothing arrived yet">
          Make a Sale: its IPN is here a moment later, encrypted and decrypted side by side.
        </Empty>
      ) : (
        <>
          <div className="table-scroll">
            <table className="dense-table">
              <thead>
                <tr>
                  <th scope="col">Answered</th>
                  <th scope="col">Arrived</th>
                  <th scope="col" className="from-tablet">
                    Notification
                  </th>
                  <th scope="col" className="number from-tablet">
                    Attempt
                  </th>
                  <th scope="col">What</th>
                  <th scope="col">
                    <span className="unseen">Show</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {items.slice(0, 8).map((one) => (
                  <tr key={one.no} aria-current={one.no === shown.no ? "true" : undefined}>
                    <td>
                      <State
                        tone={one.status === 204 ? "good" : "bad"}
                        word={one.status === null ? "nothing" : String(one.status)}
                      />
                    </td>
                    <td className="nowrap">
                      <Time at={one.at} />
                    </td>
                    <td className="from-tablet">
                      <Link href={`/notifications/${one.notificationId}`}>{one.notificationId.slice(0, 8)}…</Link>
                    </td>
                    <td className="number from-tablet">{one.attempt}</td>
                    <td className="wraps">{whatOf(one.ipn)}</td>
                    <td className="number">
                      <Button size="compact-xs" variant="subtle" onClick={() => setChosen(one.no)}>
                        Show
                      </Button>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <div className="inside">
            <Group align="stretch" gap="md" className="two-columns even">
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
          </div>
        </>
      )}
    </Panel>
  );
}

function whatOf(ipn: SandboxReceiver["arrived"][number]["ipn"]): string {
  if (ipn === null) return "not opened";
  return `${String(ipn["transaction_type"])} ${shownAmount(text(ipn["amount"]), text(ipn["currency"]))}`;
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
