import { Button, CopyButton, Group, PasswordInput, Tabs, Text } from "@mantine/core";
import { type Field, ipnFields } from "@paybell/contract";
import { IconCheck, IconCopy, IconEye } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/call.ts";
import type { ExplainedNotification } from "../api/operations.ts";
import { Form, useForm } from "../display/form.tsx";
import { type ListColumn, Table } from "../display/list.tsx";
import { Loaded } from "../display/loaded.tsx";
import { Panel } from "../display/page.tsx";
import { openSealed } from "./opening.ts";

/** The IPN itself, for users with that right. It is loaded on request only, because each read is audited. */
export function Content({ id }: { readonly id: string }) {
  const [isOpen, setIsOpen] = useState(false);
  const content = useQuery({
    queryKey: ["content", id],
    queryFn: () => api.readNotification(id),
    enabled: isOpen,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (!isOpen) {
    return (
      <Panel title="IPN">
        <Group gap="sm">
          <Button variant="default" leftSection={<IconEye size={14} aria-hidden />} onClick={() => setIsOpen(true)}>
            Show the IPN and its signature
          </Button>
          <Text c="dimmed" size="xs">
            The audit records who looked.
          </Text>
        </Group>
      </Panel>
    );
  }
  return (
    <Panel title="IPN">
      <Loaded of={content}>{(data) => <Explained content={data} />}</Loaded>
    </Panel>
  );
}

function Explained({ content }: { readonly content: ExplainedNotification }) {
  const { kind, ipn, signed, headers, body, cipher, encoding, encryptionKeyId } = content;
  return (
    <Tabs defaultValue="fields" keepMounted={false}>
      <Tabs.List mb="sm">
        <Tabs.Tab value="fields">Fields ({Object.keys(ipn).length})</Tabs.Tab>
        <Tabs.Tab value="signature">Signature explained</Tabs.Tab>
        <Tabs.Tab value="headers">Headers</Tabs.Tab>
        <Tabs.Tab value="body">Encrypted body</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="fields">
        <FieldTable kind={kind} ipn={ipn} />
      </Tabs.Panel>
      <Tabs.Panel value="signature">
        <Text size="sm" mb="xs">
          {signed.mode === "fields"
            ? "HMAC-SHA-256 over key=value of the agreed fields, in their order, joined with & (section 5.1):"
            : "HMAC-SHA-256 over the whole IPN without its signature, as canonical JSON (RFC 8785):"}
        </Text>
        <pre className="code">{signed.text}</pre>
        <dl className="fields" style={{ marginTop: 12 }}>
          <dt>signature</dt>
          <dd className="mono">{String(ipn["signature"])}</dd>
          <dt>Signing key</dt>
          <dd className="mono">{signed.keyId}</dd>
          <dt>Encryption</dt>
          <dd>
            {cipher}, {encoding}, key <span className="mono">{encryptionKeyId}</span>
          </dd>
        </dl>
      </Tabs.Panel>
      <Tabs.Panel value="headers">
        <pre className="code">
          {Object.entries(headers)
            .map(([name, value]) => `${name}: ${value}`)
            .join("\n")}
        </pre>
      </Tabs.Panel>
      <Tabs.Panel value="body">
        <Group mb="xs">
          <CopyButton value={curlOf(content)}>
            {({ copied, copy }) => (
              <Button
                variant="default"
                onClick={copy}
                leftSection={copied ? <IconCheck size={14} /> : <IconCopy size={14} />}
              >
                {copied ? "Copied" : "Copy as curl"}
              </Button>
            )}
          </CopyButton>
          <Text c="dimmed" size="xs">
            Sealed and signed just now: valid for five minutes.
          </Text>
        </Group>
        <pre className="code">{body}</pre>
      </Tabs.Panel>
    </Tabs>
  );
}

/** The fields of an IPN with their meanings. */
function FieldTable({ kind, ipn }: { readonly kind: ExplainedNotification["kind"]; readonly ipn: object }) {
  const fields = new Map<string, Field>(
    ipnFields(kind).flatMap((field) => [[field.name, field], ...(field.alias ? [[field.alias, field] as const] : [])]),
  );
  const columns: readonly ListColumn<[name: string, value: unknown]>[] = [
    { name: "Field", show: ([name]) => name, look: "mono" },
    {
      name: "Value",
      show: ([, value]) => (typeof value === "string" ? value : JSON.stringify(value)),
      look: "wraps",
    },
    {
      name: "Meaning",
      show: ([name]) => (
        <Text size="xs" c="dimmed">
          {fields.get(name)?.meaning}
        </Text>
      ),
      from: "tablet",
    },
  ];
  return <Table items={Object.entries(ipn)} columns={columns} keyOf={([name]) => name} />;
}

/** A partner's own IPN, decrypted in its browser: the service sends it sealed, and never sees the key again. */
export function OwnContent({ id, kind }: { readonly id: string; readonly kind: "card" | "settlement" }) {
  const form = useForm(
    { key: "" },
    async ({ key }) => JSON.parse(await openSealed(await api.getSealedNotification(id), key)) as object,
  );
  const { data, error } = form.sending;
  return (
    <Panel title="IPN">
      <Form of={form} submit="Decrypt here" isInRow>
        <PasswordInput
          w={420}
          maw="100%"
          label="Your encryption key"
          description="Base64, 44 characters. It stays in this browser: the page decrypts the IPN here."
          inputWrapperOrder={["label", "input", "description", "error"]}
          autoComplete="off"
          required
          {...form.text("key")}
        />
      </Form>
      {data !== undefined && error === null && (
        <>
          <Text size="xs" c="dimmed" my="xs">
            As it would be sent now. Your server verifies its signature with the signing key.
          </Text>
          <FieldTable kind={kind} ipn={data} />
        </>
      )}
    </Panel>
  );
}

/** The POST as a command for a shell, every value quoted. */
export function curlOf({ url, headers, body }: Pick<ExplainedNotification, "url" | "headers" | "body">): string {
  const given = Object.entries(headers).map(([name, value]) => `  -H ${quoted(`${name}: ${value}`)}`);
  return [
    `curl -X POST ${quoted(url ?? "https://partner.example/ipn")}`,
    ...given,
    `  --data-binary ${quoted(body)}`,
  ].join(" \\\n");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
