import { Alert, NumberInput, Stack, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/call.ts";
import type { KeyVersion, Partner, Self } from "../api/operations.ts";
import { Confirm } from "../display/confirm.tsx";
import { Identifier } from "../display/identifier.tsx";
import { Panel } from "../display/panel.tsx";
import { Secret } from "../display/secret.tsx";
import { State } from "../display/state.tsx";
import { Time, useNow } from "../display/time.tsx";
import { useMay } from "../session/session.ts";

const names = {
  apiKey: "API key",
  encryptionKey: "Encryption key",
  signingKey: "Signing key",
  webhookSecret: "Webhook secret",
} as const;
type Kind = keyof typeof names;

const overlapHoursDefault = 72;

/** Versions of each key, never a key itself; an admin rotates them. */
export function Keys({ partner }: { readonly partner: Partner | Self }) {
  const mayRotate = useMay("admin");
  const queries = useQueryClient();
  const [overlapHours, setOverlapHours] = useState<string | number>(overlapHoursDefault);
  const rotate = useMutation({
    mutationFn: (key: Kind) => api.rotateKey(partner.id, { key, overlapHours: Number(overlapHours) }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["partner", partner.id] }),
    gcTime: 0,
  });
  return (
    <Stack gap="md">
      {rotate.data !== undefined && (
        <Alert
          color="accent"
          variant="light"
          title={`The new ${names[rotate.data.kind].toLowerCase()}, shown this once`}
        >
          <Secret label="Key" value={rotate.data.secret} />
          <Text size="sm" mt="xs">
            It is used from <Time at={rotate.data.activeFrom} />; the old one stands until{" "}
            <Time at={rotate.data.expiresOld} />.
          </Text>
        </Alert>
      )}
      {(Object.keys(names) as Kind[]).map((kind) => (
        <Panel
          key={kind}
          title={names[kind]}
          flush
          actions={
            mayRotate && (
              <Confirm
                label="Rotate"
                title={`Rotate the ${names[kind].toLowerCase()}?`}
                text="The new version is shown once. The old one goes on until the overlap ends."
                onConfirm={() => rotate.mutateAsync(kind)}
              >
                <NumberInput
                  label="Overlap in hours"
                  min={0}
                  max={720}
                  value={overlapHours}
                  onChange={setOverlapHours}
                />
              </Confirm>
            )
          }
        >
          <Versions versions={partner.keys.filter((key) => key.kind === kind)} />
        </Panel>
      ))}
    </Stack>
  );
}

function Versions({ versions }: { readonly versions: readonly KeyVersion[] }) {
  const now = useNow();
  return (
    <div className="table-scroll">
      <table className="dense-table">
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col">Version</th>
            <th scope="col">Used from</th>
            <th scope="col">Ends</th>
            <th scope="col" className="number">
              Sealed with it
            </th>
          </tr>
        </thead>
        <tbody>
          {versions.map((version) => (
            <tr key={version.id}>
              <td>
                <State {...stateOf(version, now)} />
              </td>
              <td>
                <Identifier id={version.id} />
              </td>
              <td className="nowrap">
                <Time at={version.activeFrom} />
              </td>
              <td className="nowrap">{version.expiresAt === null ? "never" : <Time at={version.expiresAt} />}</td>
              <td className="number">{version.seals === undefined ? "" : `≤ ${version.seals.toLocaleString("en")}`}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function stateOf({ activeFrom, expiresAt }: KeyVersion, now: number) {
  if (expiresAt !== null && Date.parse(expiresAt) <= now) return { tone: "quiet", word: "Ended" } as const;
  if (Date.parse(activeFrom) > now) return { tone: "wait", word: "To be used" } as const;
  return expiresAt === null
    ? ({ tone: "good", word: "In use" } as const)
    : ({ tone: "wait", word: "In use, ends" } as const);
}
