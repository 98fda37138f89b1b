import { Alert, Button, Checkbox, Group, Stack } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { api } from "../api/call.ts";
import type { NewPartner } from "../api/operations.ts";
import { Empty } from "../display/empty.tsx";
import { Failure } from "../display/failure.tsx";
import { Page } from "../display/page.tsx";
import { Panel } from "../display/panel.tsx";
import { Loading } from "../display/rows.tsx";
import { Secret } from "../display/secret.tsx";
import { useMay } from "../session/session.ts";
import { SettingsForm } from "./settings-form.tsx";

/** Registers a partner, and shows its keys this once. */
export function NewPartnerPage() {
  const queries = useQueryClient();
  const register = useMutation({
    mutationFn: (input: Parameters<typeof api.registerPartner>[0]) => api.registerPartner(input),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["partners"] }),
    // The keys are nowhere but on this page.
    gcTime: 0,
  });
  const isAdmin = useMay("admin");
  const defaults = useQuery({
    queryKey: ["partner-defaults"],
    queryFn: () => api.getPartnerDefaults(),
    enabled: isAdmin,
    // A form that is being filled in must not change.
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (!isAdmin) {
    return (
      <Page title="Register a partner">
        <Empty title="Your role does not include this">Ask an admin to register the partner.</Empty>
      </Page>
    );
  }
  if (register.data !== undefined) return <Keys partner={register.data} />;
  return (
    <Page title="Register a partner">
      {defaults.isPending && <Loading />}
      {defaults.isError && <Failure error={defaults.error} onRetry={() => void defaults.refetch()} />}
      {defaults.data !== undefined && (
        <SettingsForm
          initial={defaults.data}
          isKnown={false}
          submit="Register"
          isPending={register.isPending}
          error={register.error}
          onSubmit={(input) => register.mutate(input)}
        />
      )}
    </Page>
  );
}

function Keys({ partner }: { readonly partner: NewPartner }) {
  const [isKept, setIsKept] = useState(false);
  const [, navigate] = useLocation();
  return (
    <Page title="The partner's keys">
      <Alert color="accent" variant="light">
        They are shown only once: hand them over securely. If one is lost, rotate it.
      </Alert>
      <Panel title="Registered">
        <Stack gap="sm">
          <Secret label="Partner id" value={partner.id} isHidden={false} />
          <Secret label="API key" value={partner.apiKey} />
          <Secret label="Encryption key" value={partner.encryptionKey} />
          <Secret label="Signing key" value={partner.signingKey} />
          <Secret label="Webhook secret" value={partner.webhookSecret} />
          <Group>
            <Checkbox
              label="I have saved the keys"
              checked={isKept}
              onChange={(event) => setIsKept(event.currentTarget.checked)}
            />
            <Button size="sm" disabled={!isKept} onClick={() => navigate(`/partners/${partner.id}`)}>
              Open the partner
            </Button>
          </Group>
        </Stack>
      </Panel>
    </Page>
  );
}
