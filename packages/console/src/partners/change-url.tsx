import { Alert, Group, Select, Stack, Text, TextInput } from "@mantine/core";
import { type NotifiedCommand, notifiedCommands } from "@paybell/contract";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, CallError } from "../api/call.ts";
import { Confirm } from "../display/confirm.tsx";
import { Failure } from "../display/failure.tsx";
import { Panel } from "../display/panel.tsx";

/** A partner's own change of a callback URL: registered once the new one accepted a test IPN. */
export function ChangeUrl() {
  const [url, setUrl] = useState("");
  const [command, setCommand] = useState<NotifiedCommand | null>(null);
  const queries = useQueryClient();
  const change = useMutation({
    mutationFn: (callBackUrl: string | null) => api.changeCallbackUrl({ callBackUrl, ...(command && { command }) }),
    onSuccess: (self) => {
      setUrl("");
      queries.setQueryData(["self"], self);
      return queries.invalidateQueries({ queryKey: ["certificates"] });
    },
  });
  const atField = change.error instanceof CallError ? change.error.fields["callBackUrl"] : undefined;
  const whose = command === null ? "all IPNs, unless their command has a URL of its own," : `IPNs of ${command}`;
  return (
    <Panel title="Change a callback URL">
      <Stack gap="sm" align="start">
        {change.isSuccess && (
          <Alert color="green" variant="light" role="status">
            {change.variables === null
              ? "It was removed: these IPNs go to the callback URL."
              : `It accepted the test IPN, and is registered: ${change.variables}`}
          </Alert>
        )}
        {change.isError && atField === undefined && <Failure error={change.error} />}
        <Text>
          A test IPN is sent to the new URL. When it answers 2xx, the URL is registered, also for what is queued.
          Otherwise nothing changes.
        </Text>
        <Group align="end" gap="sm">
          <Select
            label="For"
            data={[...notifiedCommands]}
            value={command}
            onChange={setCommand}
            placeholder="All without their own"
            clearable
          />
          <TextInput
            label="New URL"
            placeholder="https://shop.example/ipn"
            value={url}
            onChange={(event) => setUrl(event.currentTarget.value)}
            error={atField}
            w={420}
            maw="100%"
          />
        </Group>
        <Group gap="sm">
          <Confirm
            label="Test and change"
            title="Change the callback URL?"
            text={`A test IPN is sent to ${url.trim() || "it"}; when it is accepted, ${whose} go there.`}
            onConfirm={() => change.mutateAsync(url.trim())}
          />
          {command !== null && (
            <Confirm
              label={`Remove the URL of ${command}`}
              title={`Remove the URL of ${command}?`}
              text={`IPNs of ${command} go to the callback URL then, also those that wait.`}
              onConfirm={() => change.mutateAsync(null)}
            />
          )}
        </Group>
      </Stack>
    </Panel>
  );
}
