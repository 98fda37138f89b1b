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
  isIncomplete = false,
  onConfirm,
}: {
  readonly label: string;
  readonly title: string;
  readonly text: string;
  readonly children?: ReactNode;
  readonly needsReason?: boolean;
  /** Something in `children` has to be filled in first. */
  readonly isIncomplete?: boolean;
  readonly onConfirm: (reason: string) => Promise<unknown>;
}) {
  const [isOpen, dialog] = useDisclosure(false);
  const [reason, setReason] = useState("");
  const [error, setError] = useState<unknown>();
  // A dialog that closes still takes clicks, so an action that succeeded cannot be confirmed until it is opened again.
  const [phase, setPhase] = useState<"asking" | "running" | "done">("asking");
  const open = () => {
    if (phase === "done") setPhase("asking");
    dialog.open();
  };
  const confirm = async () => {
    setPhase("running");
    setError(undefined);
    try {
      await onConfirm(reason.trim());
      setReason("");
      setPhase("done");
      dialog.close();
    } catch (problem) {
      setError(problem);
      setPhase("asking");
    }
  };
  return (
    <>
      <Button size="xs" variant="default" onClick={open}>
        {label}
      </Button>
      <Modal opened={isOpen} onClose={dialog.close} title={title} centered>
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
            <Button size="xs" variant="default" onClick={dialog.close}>
              Cancel
            </Button>
            <Button
              size="xs"
              loading={phase !== "asking"}
              disabled={isIncomplete || (needsReason && reason.trim() === "")}
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
