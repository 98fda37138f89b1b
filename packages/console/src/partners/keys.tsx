import { Alert, Checkbox, NumberInput, Stack, Text, TextInput } from "@mantine/core";
import { overlapHours as overlap } from "@paybell/contract";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, rememberCsrf } from "../api/call.ts";
import type { KeyUse, KeyVersion, Partner, Self } from "../api/operations.ts";
import { Confirm } from "../display/confirm.tsx";
import { Identifier, Secret } from "../display/copied.tsx";
import { Form, numberOf, useForm } from "../display/form.tsx";
import { type ListColumn, Table } from "../display/list.tsx";
import { Panel } from "../display/page.tsx";
import { State, type StateInWords } from "../display/state.tsx";
import { Time, useNow } from "../display/time.tsx";
import { type SessionScope, useHasScope, useMay, useMayManage, useSession } from "../session/session.ts";

const names = {
  apiKey: "API key",
  encryptionKey: "Encryption key",
  signingKey: "Signing key",
  webhookSecret: "Webhook secret",
  callbackKey: "Client certificate",
} as const;
type Kind = Exclude<keyof typeof names, "callbackKey">;
const rotated: readonly KeyVersion["kind"][] = ["apiKey", "encryptionKey", "signingKey", "webhookSecret"];
/** As they stand within a sentence. */
const inSentence = (kind: Kind) => names[kind].replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase());

/** AES-GCM is safe with one key for so many IPNs. */
const sealsMax = 2 ** 32;

/** A secret that was made now: it is shown once. */
interface Made {
  readonly title: string;
  readonly secret: string;
  readonly about?: React.ReactNode;
}

/** Versions of each key, never a key itself. An admin rotates them, and a partner its own. */
export function Keys({ partner }: { readonly partner: Partner | Self }) {
  const { session } = useSession();
  const isOperator = session.kind === "operator";
  const isAdmin = useMay("admin");
  const mayRotate = isAdmin || (session.kind === "partner" && session.scopes === null);
  const mayRevoke = useMayManage();
  const mayAdd = useHasScope("manage") || isAdmin;
  const queries = useQueryClient();
  const now = useNow();
  const uses = useKeyUse(partner.id);
  const [made, setMade] = useState<Made>();
  const [overlapHours, setOverlapHours] = useState<string | number>(overlap.initial);
  const rotate = async (key: Kind) => {
    setMade(undefined);
    const input = { key, overlapHours: Number(overlapHours) };
    const { secret, activeFrom, expiresOld } = await (isOperator
      ? api.rotateKey(partner.id, input)
      : api.rotateOwnKey(input));
    const about = (
      <>
        It is used from <Time at={activeFrom} />; the old one is valid until <Time at={expiresOld} />.
      </>
    );
    setMade({ title: `The new ${inSentence(key)}`, secret, about });
    if (isOperator || key !== "apiKey") return;
    // Without an overlap the session's own key is refused: the sign-in would cover what is shown only here.
    await api.signIn({ token: secret }).then(
      ({ csrf }) => rememberCsrf(csrf),
      () => undefined,
    );
  };
  const revoke = (id: string) => (isOperator ? api.revokeApiKey(partner.id, id) : api.revokeOwnApiKey(id));
  const isRevocable = (key: KeyVersion) => key.kind === "apiKey" && key.scopes !== undefined && !hasEnded(key, now);
  const newest = new Set(rotated.map((kind) => partner.keys.findLast((key) => key.kind === kind && !key.scopes)?.id));
  const columns: readonly ListColumn<KeyVersion>[] = [
    {
      name: "Key",
      show: ({ kind, name, scopes }) => (
        <>
          {names[kind]}
          {name !== undefined && <> “{name}”</>}
          {scopes !== undefined && (
            <Text size="xs" c="dimmed">
              {scopes.join(", ")}
            </Text>
          )}
        </>
      ),
      look: "prose",
    },
    { name: "State", show: (version) => <State {...stateOf(version, now)} /> },
    { name: "Version", show: ({ id }) => <Identifier id={id} />, from: "tablet" },
    { name: "Used from", show: ({ activeFrom }) => <Time at={activeFrom} />, look: "nowrap", from: "desktop" },
    {
      name: "Ends",
      show: ({ expiresAt }) => (expiresAt === null ? "never" : <Time at={expiresAt} />),
      look: "nowrap",
      from: "tablet",
    },
    {
      name: "Use",
      show: ({ id, lastUsedAt, seals }) => (
        <>
          {lastUsedAt != null && (
            <>
              last <Time at={lastUsedAt} />
            </>
          )}
          <KeyUseState use={uses.get(id)} />
          {seals !== undefined && (
            <Text size="xs" c="dimmed">
              {shareOf(seals)}
            </Text>
          )}
        </>
      ),
      look: "prose",
      from: "tablet",
    },
    {
      name: "Action",
      show: (key) =>
        mayRotate && newest.has(key.id) ? (
          <Confirm
            label="Rotate"
            title={`Rotate the ${inSentence(key.kind as Kind)}?`}
            text="The new version is shown once. The old one stays valid until the overlap ends."
            isIncomplete={overlapHours === ""}
            onConfirm={() => rotate(key.kind as Kind)}
            fields={{
              overlapHours: (problem) => (
                <NumberInput
                  label="Overlap in hours"
                  required
                  clampBehavior="none"
                  value={overlapHours}
                  onChange={setOverlapHours}
                  error={problem}
                />
              ),
            }}
          />
        ) : (
          mayRevoke &&
          isRevocable(key) && (
            <Confirm
              label="Revoke"
              title={`Revoke the API key “${key.name ?? ""}”?`}
              text="Every instance refuses it within five seconds."
              onConfirm={() => revoke(key.id)}
            />
          )
        ),
      look: "actions",
    },
  ];
  const order = Object.keys(names);
  const sorted = partner.keys.toSorted((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
  return (
    <Stack gap="md">
      {made !== undefined && (
        <Alert color="accent" variant="light" title={`${made.title}, shown only once`}>
          <Secret label="Key" value={made.secret} />
          {made.about !== undefined && (
            <Text size="sm" mt="xs" component="div">
              {made.about}
            </Text>
          )}
        </Alert>
      )}
      <Table items={sorted} columns={columns} keyOf={({ id }) => id} />
      {mayAdd && (
        <AddApiKey
          partnerId={isOperator ? partner.id : undefined}
          onMade={(next) => {
            setMade(next);
            return queries.invalidateQueries({ queryKey: isOperator ? ["partner", partner.id] : ["self"] });
          }}
        />
      )}
    </Stack>
  );
}

const scopes: readonly { value: SessionScope; label: string }[] = [
  { value: "read", label: "read: looks at notifications and figures" },
  { value: "pull", label: "pull: fetches sealed IPNs" },
  { value: "commands", label: "commands: runs payment commands" },
  { value: "manage", label: "manage: redelivers, changes URLs and keys" },
];

function AddApiKey({
  partnerId,
  onMade,
}: {
  /** Undefined: the partner's own. */
  readonly partnerId: string | undefined;
  onMade(made: Made): Promise<unknown>;
}) {
  const [chosen, setChosen] = useState<SessionScope[]>(["read"]);
  const form = useForm(
    { name: "", scopes: "", expiresInDays: "" },
    async ({ name, expiresInDays: days }) => {
      const input = { name, scopes: chosen, ...(days !== "" && { expiresInDays: numberOf(days) }) };
      const { apiKey } = await (partnerId === undefined ? api.addOwnApiKey(input) : api.addApiKey(partnerId, input));
      return { title: `The API key “${name}”`, secret: apiKey };
    },
    (made, { set }) => {
      set({ name: "" });
      return onMade(made);
    },
  );
  return (
    <Panel title="Add an API key">
      <Form of={form} submit="Add" isInRow>
        <TextInput
          w={200}
          label="Name"
          description="What uses it"
          inputWrapperOrder={["label", "input", "description", "error"]}
          required
          {...form.text("name")}
        />
        <Checkbox.Group
          label="It may"
          value={chosen}
          onChange={(values) => setChosen(values as SessionScope[])}
          error={form.text("scopes").error}
        >
          <Stack gap={6} mt={6}>
            {scopes.map(({ value, label }) => (
              <Checkbox key={value} value={value} label={label} />
            ))}
          </Stack>
        </Checkbox.Group>
        <NumberInput
          w={140}
          label="Days"
          description="Empty: until revoked"
          inputWrapperOrder={["label", "input", "description", "error"]}
          {...form.number("expiresInDays")}
        />
      </Form>
    </Panel>
  );
}

/** As a share of what the key may seal: the number alone tells nobody whether to rotate it. */
function shareOf(seals: number): string {
  const percent = (100 * seals) / sealsMax;
  return percent < 0.1 ? "under 0.1 % of its limit used" : `${percent.toFixed(1)} % of its limit used`;
}

function hasEnded({ expiresAt }: KeyVersion, now: number): boolean {
  return expiresAt !== null && Date.parse(expiresAt) <= now;
}

function stateOf(version: KeyVersion, now: number): StateInWords {
  if (hasEnded(version, now)) return { tone: "quiet", word: "Ended" };
  if (Date.parse(version.activeFrom) > now) return { tone: "wait", word: "To be used" };
  return version.expiresAt === null ? { tone: "good", word: "In use" } : { tone: "wait", word: "In use, ends" };
}

const refreshMs = 10_000;
type Use = KeyUse["items"][number];

/** Results of the newest deliveries, by the version of the encryption key that sealed them. */
function useKeyUse(partnerId: string): ReadonlyMap<string, Use> {
  const isOperator = useSession().session.kind === "operator";
  const found = useQuery({
    queryKey: ["key-use", partnerId],
    queryFn: () => (isOperator ? api.getKeyUse(partnerId) : api.getOwnKeyUse()),
    refetchInterval: refreshMs,
  });
  return new Map((found.data?.items ?? []).map((use) => [use.keyId, use]));
}

/** Whether the endpoint opens what is sealed with this version. */
function KeyUseState({ use }: { readonly use: Use | undefined }) {
  if (use === undefined) return null;
  const { accepted, failed, lastAcceptedAt } = use;
  const counts = failed === 0 ? `${accepted} accepted` : `${accepted} accepted, ${failed} not`;
  return (
    <>
      <State tone={accepted === 0 ? "bad" : failed > accepted ? "wait" : "good"} word={counts} />
      {lastAcceptedAt !== null && (
        <>
          , last <Time at={lastAcceptedAt} />
        </>
      )}
    </>
  );
}
