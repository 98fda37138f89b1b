import { Group, Select, Stack, TextInput } from "@mantine/core";
import { usePages } from "../api/query.ts";
import { FormProblem, hasFieldProblems, problemOf } from "../display/form.tsx";
import { Page, useFilters } from "../display/page.tsx";
import { localInput, momentOfInput } from "../display/time.tsx";
import { PartnerFilter } from "../partners/partner.tsx";
import { useMayManage, useSession } from "../session/session.ts";
import { NotificationList } from "./notification-table.tsx";
import { Replay } from "./replay.tsx";
import { useNotificationApi } from "./search.ts";
import { reasons } from "./words.ts";

const names = ["partner", "reason", "from", "to"] as const;

export function ParkedPage() {
  return (
    <Page title="Parked">
      <Parked />
    </Page>
  );
}

/** The parked notifications that match the filters, and sending all of them again: a partner's are its own. */
export function Parked() {
  const isOperator = useSession().session.kind === "operator";
  const mayAct = useMayManage();
  const notificationApi = useNotificationApi();
  const { params, set } = useFilters();
  const filter = {
    state: "parked" as const,
    ...Object.fromEntries(names.flatMap((name) => (params.get(name) ? [[name, params.get(name)]] : []))),
  };
  const found = usePages(["parked", filter], (page, { signal }) =>
    notificationApi.search({ ...filter, ...page }, signal),
  );
  return (
    <Stack gap="md">
      <Group gap="xs" align="start" className="filters">
        {isOperator && <PartnerFilter label="Partner" />}
        <Select
          w={260}
          label="Reason"
          placeholder="Any reason"
          clearable
          searchable
          data={Object.entries(reasons).map(([value, label]) => ({ value, label }))}
          value={params.get("reason")}
          onChange={(reason) => set({ reason })}
          error={problemOf(found.error, "reason")}
        />
        {(["from", "to"] as const).map((name) => (
          <TextInput
            key={name}
            type="datetime-local"
            label={name === "from" ? "Created from" : "Created before"}
            value={localInput(params.get(name))}
            onChange={({ currentTarget: { value } }) => set({ [name]: momentOfInput(value) })}
            error={problemOf(found.error, name)}
          />
        ))}
      </Group>
      {hasFieldProblems(found.error) ? (
        <FormProblem error={found.error} names={names} />
      ) : (
        <>
          {mayAct && (
            <Replay
              key={params.toString()}
              title="Send what is parked again"
              isNothing={found.data?.items.length === 0}
              filter={filter}
            />
          )}
          <NotificationList
            of={found}
            empty={
              Object.keys(filter).length > 1
                ? ["Nothing that is parked matches", "No parked notification has all of this."]
                : [
                    "Nothing is parked",
                    "A notification is parked when its schedule has run out; it is kept, and can be sent again.",
                  ]
            }
          />
        </>
      )}
    </Stack>
  );
}
