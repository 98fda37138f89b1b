import { Button, Group, Modal, Stack, Text, Textarea } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type ReactNode, useState } from "react";
import { Failure } from "./failure.tsx";

/** A button that asks for confirmation, and for a reason if one is recorded. */
export function Confirm({
  label,
  title,
  text,
  children,
  needsReason = false,
  onConfirm,
}: {
  readonly label: string;
  readonly title: string;
  readonly text: string;
  readonly children?: ReactNode;
  readonly needsReason?: boolean;
  readonly onConfirm: (reason: string) => Promise<unknown>;
}) {
  const [isOpen, { open, close }] = useDisclosure(false);
  const [reason, setReason] = useState("");
  const [error, setError] = useState<unknown>();
  const [isPending, setIsPending] = useState(false);
  const confirm = async () => {
    setIsPending(true);
    setError(undefined);
    try {
      await onConfirm(reason.trim());
      setReason("");
      close();
    } catch (problem) {
      setError(problem);
    } finally {
      setIsPending(false);
    }
  };
  return (
    <>
      <Button size="xs" variant="default" onClick={open}>
        {label}
      </Button>
      <Modal opened={isOpen} onClose={close} title={title} centered>
        <Stack gap="md">
          <Text>{text}</Text>
          {children}
          {needsReason && (
            <Textarea
              label="Reason"
              description="Kept with the event and in the audit"
              required
              data-autofocus
              value={reason}
              onChange={(event) => setReason(event.currentTarget.value)}
            />
          )}
          {error !== undefined && <Failure error={error} />}
          <Group justify="end" gap="xs">
            <Button size="xs" variant="default" onClick={close}>
              Cancel
            </Button>
            <Button
              size="xs"
              loading={isPending}
              disabled={needsReason && reason.trim() === ""}
              onClick={() => void confirm()}
            >
              {label}
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}
