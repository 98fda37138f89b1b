import { Button, SegmentedControl, TextInput } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import { Link, useSearchParams } from "wouter";
import { Empty } from "../display/empty.tsx";
import { Failure } from "../display/failure.tsx";
import { Page } from "../display/page.tsx";
import { Loading, OpeningRow } from "../display/rows.tsx";
import { State } from "../display/state.tsx";
import { Time } from "../display/time.tsx";
import { useMay } from "../session/session.ts";
import { Endpoints } from "./endpoints.tsx";
import { usePartners } from "./use-partners.ts";

export const partnerStates = {
  active: { tone: "good", word: "Active" },
  paused: { tone: "wait", word: "Paused" },
  disabled: { tone: "quiet", word: "Disabled" },
} as const;

/** Every partner, and the endpoints that failed. */
export function PartnersPage() {
  const [params, setParams] = useSearchParams();
  const mayRegister = useMay("admin");
  const tab = params.get("tab") === "endpoints" ? "endpoints" : "partners";
  return (
    <Page
      title="Partners"
      actions={
        <>
          <SegmentedControl
            size="xs"
            aria-label="Show"
            value={tab}
            onChange={(value) => setParams(value === "endpoints" ? { tab: "endpoints" } : {})}
            data={[
              { value: "partners", label: "Partners" },
              { value: "endpoints", label: "Failing endpoints" },
            ]}
          />
          {mayRegister && (
            <Button size="xs" component={Link} href="/partners/new" leftSection={<IconPlus size={14} aria-hidden />}>
              Register a partner
            </Button>
          )}
        </>
      }
    >
      {tab === "endpoints" ? <Endpoints /> : <List />}
    </Page>
  );
}

function List() {
  const partners = usePartners();
  const [text, setText] = useState("");
  if (partners.isPending) return <Loading />;
  if (partners.isError) return <Failure error={partners.error} onRetry={() => void partners.refetch()} />;
  const wanted = text.trim().toLowerCase();
  const found = partners.data.filter(
    ({ id, settings }) => settings.name.toLowerCase().includes(wanted) || id === wanted,
  );
  if (partners.data.length === 0)
    return <Empty title="No partner yet">Register the first one: its keys are shown once.</Empty>;
  return (
    <>
      <TextInput
        size="xs"
        w={260}
        placeholder="Name"
        aria-label="Filter by name"
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <div className="table-scroll">
        <table className="dense-table">
          <thead>
            <tr>
              <th scope="col">Partner</th>
              <th scope="col">State</th>
              <th scope="col">Callback URL</th>
              <th scope="col" className="wide">
                Encryption
              </th>
              <th scope="col" className="wide">
                Registered
              </th>
            </tr>
          </thead>
          <tbody>
            {found.map(({ id, state, settings, createdAt }) => (
              <OpeningRow key={id} to={`/partners/${id}`}>
                <td>
                  <div className="clipped">
                    <Link href={`/partners/${id}`} title={settings.name}>
                      {settings.name}
                    </Link>
                  </div>
                </td>
                <td>
                  <State {...partnerStates[state]} />
                </td>
                <td>
                  <div className="clipped long" title={settings.callBackUrl ?? ""}>
                    {settings.callBackUrl ?? "–"}
                  </div>
                </td>
                <td className="wide">{settings.cipher}</td>
                <td className="nowrap wide">
                  <Time at={createdAt} />
                </td>
              </OpeningRow>
            ))}
          </tbody>
        </table>
      </div>
      {found.length === 0 && <Empty title="No partner has this name" />}
    </>
  );
}
