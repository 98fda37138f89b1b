import { Alert, Button, Group, Modal, NumberInput, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useLocation } from "wouter";
import { api } from "../api/call.ts";
import type { Partner, ViewLink } from "../api/operations.ts";
import { Confirm } from "../display/confirm.tsx";
import { Identifier, Secret } from "../display/copied.tsx";
import { Form, numberOf, useForm } from "../display/form.tsx";
import { Failure, Loaded } from "../display/loaded.tsx";
import { Page, PageTabs } from "../display/page.tsx";
import { Time } from "../display/time.tsx";
import { Replay } from "../notifications/replay.tsx";
import { Statistics } from "../overview/figures.tsx";
import { PartnerTrouble } from "../overview/trouble.tsx";
import { useMay, useSession } from "../session/session.ts";
import { Certify } from "./certify.tsx";
import { Certificates, Endpoints } from "./endpoints.tsx";
import { Keys } from "./keys.tsx";
import { PartnerState } from "./partner.tsx";
import { SettingsForm } from "./settings-form.tsx";
import { Terminals } from "./terminals.tsx";

/** One partner: is it us or them, and what is agreed with them. */
export function PartnerPage({ id }: { readonly id: string }) {
  const found = useQuery({ queryKey: ["partner", id], queryFn: () => api.getPartner(id) });
  return (
    <Loaded of={found} missing={["There is no such partner"]}>
      {(partner) => <Shown partner={partner} />}
    </Loaded>
  );
}

function Shown({ partner }: { readonly partner: Partner }) {
  const mayAct = useMay("operator");
  const { id, settings } = partner;
  return (
    <Page title={settings.name} actions={<Actions partner={partner} />}>
      <Group gap="md">
        <PartnerState of={partner} />
        <Identifier id={id} />
        <Text className="wraps" c="dimmed">
          {settings.callBackUrl ?? "no callback URL"}
          {Object.entries(settings.callBackUrlByCommand).map(([command, url]) => ` · ${command} ${url}`)}
        </Text>
        <Link href={`/notifications?partner=${id}`}>Its notifications</Link>
        <Link href={`/parked?partner=${id}`}>Its parked ones</Link>
      </Group>
      <PartnerTrouble id={id} />
      <PageTabs
        tabs={{
          Statistics: () => (
            <Stack gap="md">
              <Statistics id={id} />
              <Endpoints partner={id} />
              <Certificates partner={id} />
            </Stack>
          ),
          Settings: () => <Settings partner={partner} />,
          Terminals: () => <Terminals partner={id} />,
          Keys: () => <Keys partner={partner} />,
          Endpoints: () => (
            <Stack gap="md">
              <Certificates partner={id} />
              <Endpoints partner={id} />
              {mayAct && <SendPending id={id} />}
            </Stack>
          ),
          ...(mayAct && { Certify: () => <Certify partner={id} registered={settings.callBackUrl} /> }),
        }}
      />
    </Page>
  );
}

const refreshMs = 10_000;

function SendPending({ id }: { readonly id: string }) {
  const filter = { partner: id, state: "pending" } as const;
  const first = useQuery({
    queryKey: ["pending", id],
    queryFn: () => api.searchNotifications({ ...filter, limit: 1 }),
    refetchInterval: refreshMs,
  });
  return (
    <Replay title="Send what waits now" what="pending" isNothing={first.data?.items.length === 0} filter={filter} />
  );
}

function Settings({ partner }: { readonly partner: Partner }) {
  const queries = useQueryClient();
  const mayAct = useMay("operator");
  return (
    <SettingsForm
      initial={partner.settings}
      submit={mayAct ? "Save" : undefined}
      call={async (input) => {
        const changed = await api.changePartner(partner.id, input);
        queries.setQueryData(["partner", partner.id], changed);
        await queries.invalidateQueries({ queryKey: ["partners"] });
        return changed.settings;
      }}
    />
  );
}

function Actions({ partner }: { readonly partner: Partner }) {
  const { id, state, settings } = partner;
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const mayAct = useMay("operator");
  const change = useMutation({
    mutationFn: (action: "pause" | "resume") => (action === "pause" ? api.pausePartner(id) : api.resumePartner(id)),
    onSuccess: (changed) => {
      queries.setQueryData(["partner", id], changed);
      return queries.invalidateQueries({ queryKey: ["partners"] });
    },
  });
  const test = useMutation({
    mutationFn: () => api.sendPartnerTestNotification(id),
    onSuccess: (notification) => navigate(`/notifications/${notification.id}`),
  });
  if (!mayAct) return null;
  return (
    <>
      {(change.error ?? test.error) != null && <Failure error={change.error ?? test.error} />}
      <Button
        variant="default"
        loading={test.isPending}
        onClick={() => test.mutate()}
        disabled={(settings.callBackUrlByCommand["SALE"] ?? settings.callBackUrl) === null}
      >
        Send a test IPN
      </Button>
      <ShowToPartner partner={partner} />
      {state === "active" ? (
        <Confirm
          label="Pause deliveries"
          title={`Pause deliveries to ${settings.name}?`}
          text="Its commands continue; its notifications wait, and are sent when it is resumed."
          onConfirm={() => change.mutateAsync("pause")}
        />
      ) : (
        <Button loading={change.isPending} onClick={() => change.mutate("resume")}>
          Resume deliveries
        </Button>
      )}
    </>
  );
}

const minutesDefault = 60;

/** A link for somebody at the partner: it opens the partner's own pages, to read, for an hour at most. */
export function ShowToPartner({ partner: { id, settings } }: { readonly partner: Partner }) {
  const [isOpen, dialog] = useDisclosure(false);
  const form = useForm({ minutes: String(minutesDefault) }, ({ minutes }) =>
    api.makeViewLink(id, minutes === "" ? {} : { minutes: numberOf(minutes) }),
  );
  const make = form.sending;
  const revoke = useMutation({ mutationFn: (link: ViewLink) => api.revokeViewLink(id, link.id) });
  const open = () => {
    make.reset();
    revoke.reset();
    dialog.open();
  };
  return (
    <>
      <Button variant="default" onClick={open}>
        Share a view
      </Button>
      <Modal opened={isOpen} onClose={dialog.close} title={`Share the pages of ${settings.name}`} centered>
        <Stack gap="md">
          <Text>
            Whoever has the link sees what the partner sees: its notifications, figures and settings. It changes
            nothing, and shows no IPN's content. The audit has who made it, and each time it is opened.
          </Text>
          {make.data === undefined ? (
            <Form of={form} submit="Make the link" isInRow>
              <NumberInput label="Minutes" w={120} data-autofocus {...form.number("minutes")} />
            </Form>
          ) : (
            <Made link={make.data} isRevoked={revoke.isSuccess} onRevoke={() => revoke.mutate(make.data)} />
          )}
          {revoke.isError && <Failure error={revoke.error} />}
        </Stack>
      </Modal>
    </>
  );
}

function Made({
  link,
  isRevoked,
  onRevoke,
}: {
  readonly link: ViewLink;
  readonly isRevoked: boolean;
  onRevoke(): void;
}) {
  const { session } = useSession();
  if (isRevoked) {
    return (
      <Alert color="accent" variant="light" role="status">
        It is revoked: what it opened ends within two seconds.
      </Alert>
    );
  }
  const isWhole = !link.url.startsWith("/") || session.sandbox;
  return (
    <Stack gap="xs">
      <Secret
        label="Link"
        value={link.url.startsWith("/") && session.sandbox ? `${location.origin}${link.url}` : link.url}
      />
      {!isWhole && (
        <Text size="xs" c="dimmed">
          Put the address before it at which partners reach the service: PAYBELL_PARTNERS_URL is not set.
        </Text>
      )}
      <Group gap="xs">
        <Text size="xs" c="dimmed" component="div">
          Shown only once; valid until <Time at={link.expiresAt} />
        </Text>
        <Button variant="default" onClick={onRevoke}>
          Revoke it
        </Button>
      </Group>
    </Stack>
  );
}
