import { Checkbox, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/call.ts";
import { Failure } from "../display/failure.tsx";
import { Page } from "../display/page.tsx";
import { Loading } from "../display/rows.tsx";

/** The settings of the instance that answered: they are changed where it is started. */
export function SettingsPage() {
  const found = useQuery({ queryKey: ["settings"], queryFn: () => api.listSettings() });
  const [text, setText] = useState("");
  const [onlyChanged, setOnlyChanged] = useState(false);
  const wanted = text.trim().toLowerCase();
  const items = (found.data?.items ?? []).filter(
    ({ name, meaning, source }) =>
      (!onlyChanged || source === "environment") && `${name} ${meaning}`.toLowerCase().includes(wanted),
  );
  return (
    <Page
      title="Settings"
      actions={
        <>
          <Checkbox
            size="xs"
            label="Only what was set"
            checked={onlyChanged}
            onChange={(event) => setOnlyChanged(event.currentTarget.checked)}
          />
          <TextInput
            size="xs"
            w={220}
            placeholder="Name or meaning"
            aria-label="Filter settings"
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
          />
        </>
      }
    >
      {found.isPending && <Loading />}
      {found.isError && <Failure error={found.error} onRetry={() => void found.refetch()} />}
      {found.data !== undefined && (
        <div className="table-scroll">
          <table className="dense-table">
            <thead>
              <tr>
                <th scope="col">Setting</th>
                <th scope="col">Value</th>
                <th scope="col">Source</th>
                <th scope="col" className="wide">
                  Default
                </th>
                <th scope="col" className="wide">
                  Meaning
                </th>
              </tr>
            </thead>
            <tbody>
              {items.map((one) => (
                <tr key={one.name}>
                  <td className="mono">{one.name}</td>
                  <td className="wraps">
                    {one.value === null ? "–" : [one.value, one.unit].filter(Boolean).join(" ")}
                  </td>
                  <td>{one.source === "environment" ? <strong>set</strong> : "default"}</td>
                  <td className="wraps wide">{one.default ?? "–"}</td>
                  <td className="wide">
                    <Text size="xs" c="dimmed">
                      {one.meaning}
                    </Text>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Page>
  );
}
