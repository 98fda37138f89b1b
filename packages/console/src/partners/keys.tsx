import { Alert, NumberInput, Stack, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/call.ts";
import type { KeyVersion, Partner, Self } from "../api/operations.ts";
import { Confirm } from "../display/confirm.tsx";
import { Identifier } from "../display/identifier.tsx";
import { type ListColumn, Table } from "../display/list.tsx";
import { Panel } from "../display/panel.tsx";
import { Secret } from "../display/secret.tsx";
import { State } from "../display/state.tsx";
import { Time, useNow } from "../display/time.tsx";
import { useMay } from "../session/session.ts";
import { KeyUseState, useKeyUse } from "./key-use.tsx";

const names = {
  apiKey: "API key",
  encryptionKey: "Encryption key",
  signingKey: "Signing key",
  webhookSecret: "Webhook secret",
} as const;
type Kind = keyof typeof names;
/** As they stand within a sentence. */
const inSentence = (kind: Kind) => names[kind].replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase());

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
        <Alert color="accent" variant="light" title={`The new ${inSentence(rotate.data.kind)}, shown only once`}>
          <Secret label="Key" value={rotate.data.secret} />
          <Text size="sm" mt="xs">
            It is used from <Time at={rotate.data.activeFrom} />; the old one is valid until{" "}
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
                title={`Rotate the ${inSentence(kind)}?`}
                text="The new version is shown once. The old one stays valid until the overlap ends."
                isIncomplete={overlapHours === ""}
                onConfirm={() => rotate.mutateAsync(kind)}
              >
                <NumberInput
                  label="Overlap in hours"
                  required
                  min={0}
                  max={720}
                  value={overlapHours}
                  onChange={setOverlapHours}
                />
              </Confirm>
            )
          }
        >
          <Versions partnerId={partner.id} versions={partner.keys.filter((key) => key.kind === kind)} />
        </Panel>
      ))}
    </Stack>
  );
}

function Versions({ partnerId, versions }: { readonly partnerId: string; readonly versions: readonly KeyVersion[] }) {
  const now = useNow();
  const uses = useKeyUse(partnerId);
  const columns: readonly ListColumn<KeyVersion>[] = [
    { name: "State", show: (version) => <State {...stateOf(version, now)} /> },
    { name: "Version", show: ({ id }) => <Identifier id={id} /> },
    { name: "Used from", show: ({ activeFrom }) => <Time at={activeFrom} />, look: "nowrap", from: "tablet" },
    { name: "Ends", show: ({ expiresAt }) => (expiresAt === null ? "never" : <Time at={expiresAt} />), look: "nowrap" },
    {
      name: "Last use",
      show: ({ id, lastUsedAt }) => (
        <>
          {lastUsedAt != null && <Time at={lastUsedAt} />}
          <KeyUseState use={uses.get(id)} />
        </>
      ),
      look: "prose",
      from: "tablet",
    },
    {
      name: "Sealed with it",
      show: ({ seals }) => seals !== undefined && `≤ ${seals.toLocaleString("en")}`,
      look: "number",
      from: "tablet",
    },
  ];
  return <Table items={versions} columns={columns} keyOf={({ id }) => id} />;
}

function stateOf({ activeFrom, expiresAt }: KeyVersion, now: number) {
  if (expiresAt !== null && Date.parse(expiresAt) <= now) return { tone: "quiet", word: "Ended" } as const;
  if (Date.parse(activeFrom) > now) return { tone: "wait", word: "To be used" } as const;
  return expiresAt === null
    ? ({ tone: "good", word: "In use" } as const)
    : ({ tone: "wait", word: "In use, ends" } as const);
}
