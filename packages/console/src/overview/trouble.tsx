import { Alert, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api } from "../api/call.ts";
import type { Overview, ParkedOfPartner, Trouble } from "../api/operations.ts";
import { type ListColumn, Table } from "../display/list.tsx";
import { Panel } from "../display/page.tsx";
import { ComingTime, Time, useNow } from "../display/time.tsx";
import { countInWords, parkedInWords, problemInWords, reasonInWords, troubleInWords } from "../notifications/words.ts";
import { isTask, useNotReceived } from "../partners/partner.tsx";

const refreshMs = 3_000;

type NotReceived = Trouble | ParkedOfPartner;

/** The partners that do not receive their notifications now; then what else waits for a person, in a quiet line each. */
export function NotReceivedNow({ trouble, parked }: Pick<Overview, "trouble" | "parked">) {
  const now = useNow();
  const tasks = parked.filter(isTask);
  const inTrouble = [...trouble, ...parked.filter((one) => !isTask(one))];
  return (
    <>
      {inTrouble.length > 0 && (
        <Panel title="Trouble now" flush>
          <Table items={inTrouble} columns={columns} keyOf={(one) => `${one.partnerId} ${"parked" in one}`} />
        </Panel>
      )}
      {tasks.length > 0 && (
        <Panel title="Waits for a person">
          {tasks.map((one) => (
            <Text key={one.partnerId} size="sm">
              <Link href={`/partners/${one.partnerId}`}>{one.partnerName}</Link>: {parkedInWords(one, "its", now)}{" "}
              <Link href={`/parked?partner=${one.partnerId}`}>Send again</Link>
            </Text>
          ))}
        </Panel>
      )}
    </>
  );
}

const columns: readonly ListColumn<NotReceived>[] = [
  {
    name: "Partner",
    show: ({ partnerId, partnerName }) => <Link href={`/partners/${partnerId}`}>{partnerName}</Link>,
    look: "clipped",
  },
  {
    name: "What is wrong",
    show: (one) => (
      <Link href={`/notifications/${one.notificationId}`}>
        {"parked" in one ? `parked: ${reasonInWords(one.reason, one.httpStatus)}` : problemInWords(one)}
      </Link>
    ),
    look: "prose",
  },
  { name: "Since", show: ({ since }) => since !== null && <Time at={since} />, look: "nowrap", from: "tablet" },
  {
    name: "Waiting",
    show: (one) =>
      "parked" in one ? (
        <Link href={`/parked?partner=${one.partnerId}`}>{countInWords(one.parked)}</Link>
      ) : (
        <Link href={`/notifications?partner=${one.partnerId}&state=pending`}>{countInWords(one.waiting)}</Link>
      ),
    look: "number",
  },
  {
    name: "Next try",
    show: (one) =>
      "parked" in one || one.nextAttemptAt === null ? "when a person acts" : <ComingTime at={one.nextAttemptAt} />,
    look: "nowrap",
    from: "tablet",
  },
  {
    name: "Parking begins",
    show: (one) =>
      "parked" in one ? "parked" : one.parkingAt === null ? "not meanwhile" : <ComingTime at={one.parkingAt} />,
    look: "nowrap",
    from: "tablet",
  },
];

/** What a partner has not received and why, in sentences, with the pages that show and send it. */
function Notes({
  trouble,
  parked,
  whose,
  sendTo,
  parkedTo,
}: {
  readonly trouble: Trouble | null | undefined;
  readonly parked: ParkedOfPartner | null | undefined;
  readonly whose: "its" | "your";
  readonly sendTo: string;
  readonly parkedTo: string;
}) {
  const now = useNow();
  return (
    <>
      {trouble != null && (
        <Alert color="red" variant="outline" role="status">
          <Text size="sm">{troubleInWords(trouble, whose, now)}</Text>
          <Text size="sm">
            <Link href={`/notifications/${trouble.notificationId}`}>The oldest of them</Link>
            {" · "}
            <Link href={sendTo}>Send them now</Link>
          </Text>
        </Alert>
      )}
      {parked != null && (
        <Alert
          color={isTask(parked) ? "gray" : "red"}
          variant="outline"
          role="status"
          {...(isTask(parked) && { style: { borderColor: "var(--mantine-color-default-border)" } })}
        >
          <Text size="sm">{parkedInWords(parked, whose, now)}</Text>
          <Text size="sm">
            <Link href={`/notifications/${parked.notificationId}`}>The newest of them</Link>
            {" · "}
            <Link href={parkedTo}>Send them again</Link>
          </Text>
        </Alert>
      )}
    </>
  );
}

/** A partner's home begins with it. */
export function OwnTrouble() {
  const found = useQuery({ queryKey: ["backlog"], queryFn: () => api.getBacklog(), refetchInterval: refreshMs });
  const { trouble, parkedBecause } = found.data ?? {};
  return (
    <Notes trouble={trouble} parked={parkedBecause} whose="your" sendTo="/?tab=catch-up" parkedTo="/?tab=catch-up" />
  );
}

/** The same for the operator, on the partner's page. */
export function PartnerTrouble({ id }: { readonly id: string }) {
  const { trouble = [], parked = [] } = useNotReceived() ?? {};
  const ofPartner = ({ partnerId }: { readonly partnerId: string }) => partnerId === id;
  return (
    <Notes
      trouble={trouble.find(ofPartner)}
      parked={parked.find(ofPartner)}
      whose="its"
      sendTo={`/partners/${id}?tab=endpoints`}
      parkedTo={`/parked?partner=${id}`}
    />
  );
}
