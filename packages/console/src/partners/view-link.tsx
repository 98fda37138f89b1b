import { Alert, Button, Group, Modal, NumberInput, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation } from "@tanstack/react-query";
import { api } from "../api/call.ts";
import type { Partner, ViewLink } from "../api/operations.ts";
import { Secret } from "../display/copied.tsx";
import { Form, numberOf, useForm } from "../display/form.tsx";
import { Failure } from "../display/loaded.tsx";
import { Time } from "../display/time.tsx";
import { useSession } from "../session/session.ts";

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
