import { Alert, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api } from "../api/call.ts";
import type { Trouble } from "../api/operations.ts";
import { type ListColumn, Table } from "../display/list.tsx";
import { ComingTime, Time, useNow } from "../display/time.tsx";
import { countInWords, problemInWords, troubleInWords } from "../notifications/words.ts";
import { useTroubles } from "../partners/partner.tsx";

const refreshMs = 3_000;

/** The partners that do not receive their notifications now. */
export function TroubleTable({ items }: { readonly items: readonly Trouble[] }) {
  return <Table items={items} columns={columns} keyOf={({ partnerId }) => partnerId} />;
}

const columns: readonly ListColumn<Trouble>[] = [
  {
    name: "Partner",
    show: ({ partnerId, partnerName }) => <Link href={`/partners/${partnerId}`}>{partnerName}</Link>,
    look: "clipped",
  },
  {
    name: "What is wrong",
    show: (one) => <Link href={`/notifications/${one.notificationId}`}>{problemInWords(one)}</Link>,
    look: "prose",
  },
  { name: "Since", show: ({ since }) => since !== null && <Time at={since} />, look: "nowrap", from: "tablet" },
  {
    name: "Waiting",
    show: ({ partnerId, waiting }) => (
      <Link href={`/notifications?partner=${partnerId}&state=pending`}>{countInWords(waiting)}</Link>
    ),
    look: "number",
  },
  {
    name: "Next try",
    show: ({ nextAttemptAt }) => (nextAttemptAt === null ? "when a person acts" : <ComingTime at={nextAttemptAt} />),
    look: "nowrap",
    from: "tablet",
  },
  {
    name: "Parking begins",
    show: ({ parkingAt }) => (parkingAt === null ? "not meanwhile" : <ComingTime at={parkingAt} />),
    look: "nowrap",
    from: "tablet",
  },
];

/** Why one partner's notifications wait, in a sentence. */
function TroubleNote({
  trouble,
  whose,
  sendTo,
}: {
  readonly trouble: Trouble;
  readonly whose: "its" | "your";
  /** The page that sends them now. */
  readonly sendTo: string;
}) {
  const now = useNow();
  return (
    <Alert color="red" variant="outline" role="status">
      <Text size="sm">{troubleInWords(trouble, whose, now)}</Text>
      <Text size="sm">
        <Link href={`/notifications/${trouble.notificationId}`}>The oldest of them</Link>
        {" · "}
        <Link href={sendTo}>Send them now</Link>
      </Text>
    </Alert>
  );
}

/** A partner's home begins with it. */
export function OwnTrouble() {
  const found = useQuery({ queryKey: ["backlog"], queryFn: () => api.getBacklog(), refetchInterval: refreshMs });
  const trouble = found.data?.trouble;
  if (trouble == null) return null;
  return <TroubleNote trouble={trouble} whose="your" sendTo="/?tab=catch-up" />;
}

/** The same for the operator, on the partner's page. */
export function PartnerTrouble({ id }: { readonly id: string }) {
  const trouble = useTroubles()?.find(({ partnerId }) => partnerId === id);
  if (trouble === undefined) return null;
  return <TroubleNote trouble={trouble} whose="its" sendTo={`/partners/${id}?tab=endpoints`} />;
}
