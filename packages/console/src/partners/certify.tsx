import { Anchor, Stack, Text, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/call.ts";
import type { Certification, CertifiedCase } from "../api/operations.ts";
import { Confirm } from "../display/confirm.tsx";
import { problemOf } from "../display/form.tsx";
import { type ListColumn, Table } from "../display/list.tsx";
import { Panel } from "../display/page.tsx";
import { State } from "../display/state.tsx";
import { duration, Time } from "../display/time.tsx";

/** Runs the cases of `paybell certify` against an endpoint, and shows the report. */
export function Certify({ partner, registered }: { readonly partner?: string; readonly registered: string | null }) {
  const [url, setUrl] = useState("");
  const run = useMutation({
    mutationFn: () => {
      const input = url.trim() === "" ? {} : { url: url.trim() };
      return partner === undefined ? api.certifyEndpoint(input) : api.certifyPartner(partner, input);
    },
  });
  return (
    <Stack gap="md">
      <Panel title="Certify the endpoint">
        <Stack gap="sm" align="start">
          <Text>
            Invented notifications are sent that the endpoint must accept, and forged ones that it must refuse. Each has
            a merchantTransId that begins with CERTIFY-: nothing may be shipped for them.
          </Text>
          <TextInput
            label="URL"
            description="Empty: the registered one. Another one has to be within the callback addresses."
            placeholder={registered ?? "none is registered"}
            value={url}
            onChange={(event) => setUrl(event.currentTarget.value)}
            error={problemOf(run.error, "url")}
            w={420}
            maw="100%"
          />
          <Confirm
            label="Certify"
            title="Send some 60 POSTs to the endpoint?"
            text={`To ${url.trim() || registered || "the registered URL"}. It takes two minutes at most.`}
            onConfirm={() => run.mutateAsync()}
          />
        </Stack>
      </Panel>
      {run.data !== undefined && <Report report={run.data} />}
    </Stack>
  );
}

const verdicts = {
  passed: { tone: "good", word: "Passed" },
  failed: { tone: "bad", word: "Failed" },
  not_run: { tone: "quiet", word: "Not run" },
  left_out: { tone: "quiet", word: "Left out" },
} as const;

const columns: readonly ListColumn<CertifiedCase>[] = [
  { name: "Verdict", show: ({ verdict }) => <State {...verdicts[verdict]} /> },
  {
    name: "Case",
    show: ({ title, finding }) => (
      <>
        {title}
        {finding !== null && (
          <Text size="xs" c="dimmed">
            {finding.means} {finding.fix}{" "}
            <Anchor href={finding.documentation} target="_blank" inherit underline="always">
              Guide
            </Anchor>
          </Text>
        )}
      </>
    ),
    look: "wraps",
  },
  { name: "Expected", show: ({ expected }) => expected },
  { name: "Came", show: cameOf, look: "wraps" },
];

function Report({ report }: { readonly report: Certification }) {
  const { passed, counts, url, durationMs, certificateEndsAt, diagnoses, cases } = report;
  const failedFirst = [...cases].sort((a, b) => Number(b.verdict === "failed") - Number(a.verdict === "failed"));
  return (
    <Panel title="Report" flush>
      <div className="inside">
        <Stack gap="xs">
          <Text component="div" fz={15} role="status">
            <State
              tone={passed ? "good" : "bad"}
              word={passed ? `All ${counts.passed} cases passed` : `${counts.failed} of ${cases.length} cases failed`}
            />
          </Text>
          <Text c="dimmed" className="wraps">
            {url}, in {duration(durationMs)}
            {certificateEndsAt !== null && (
              <>
                ; its certificate ends <Time at={certificateEndsAt} />
              </>
            )}
          </Text>
          {diagnoses.map((one) => (
            <Text key={one.code}>
              <strong>First: </strong>
              {one.means} {one.fix}
            </Text>
          ))}
        </Stack>
      </div>
      <Table items={failedFirst} columns={columns} keyOf={({ code }) => code} />
    </Panel>
  );
}

function cameOf({ exchanges, note }: CertifiedCase): string {
  const last = exchanges.at(-1);
  if (last === undefined) return note ?? "";
  return last.status === null ? (last.detail ?? "no answer") : `${last.status} after ${duration(last.ms)}`;
}
