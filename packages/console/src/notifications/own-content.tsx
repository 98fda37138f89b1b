import { Button, Group, PasswordInput, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/call.ts";
import { Failure } from "../display/failure.tsx";
import { Panel } from "../display/panel.tsx";
import { FieldTable } from "./content.tsx";
import { NotOpened, openSealed } from "./opening.ts";

/** A partner's own IPN, decrypted in its browser: the service sends it sealed, and never sees the key again. */
export function OwnContent({ id, kind }: { readonly id: string; readonly kind: "card" | "settlement" }) {
  const [key, setKey] = useState("");
  const open = useMutation({
    mutationFn: async () => JSON.parse(await openSealed(await api.getSealedNotification(id), key)) as object,
    gcTime: 0,
  });
  return (
    <Panel title="IPN">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          open.mutate();
        }}
      >
        <Group gap="sm" align="start">
          <PasswordInput
            size="xs"
            w={420}
            maw="100%"
            label="Your encryption key"
            description="Base64, 44 characters. It stays in this browser: the page decrypts the IPN here."
            autoComplete="off"
            required
            value={key}
            onChange={(event) => setKey(event.currentTarget.value)}
            error={open.error instanceof NotOpened ? open.error.message : undefined}
          />
          <Button size="xs" type="submit" mt={40} variant="default" loading={open.isPending} disabled={key === ""}>
            Decrypt here
          </Button>
        </Group>
      </form>
      {open.isError && !(open.error instanceof NotOpened) && <Failure error={open.error} />}
      {open.data !== undefined && (
        <>
          <Text size="xs" c="dimmed" my="xs">
            As it would be sent now. Your server verifies its signature with the signing key.
          </Text>
          <FieldTable kind={kind} ipn={open.data} />
        </>
      )}
    </Panel>
  );
}
