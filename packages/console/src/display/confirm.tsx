import { Button, Group, Modal, Stack, Text, Textarea } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { noticeFailure } from "../api/query.ts";
import { FormProblem, problemOf } from "./form.tsx";

/** A button that asks for confirmation, and for a reason if one is recorded. Then everything shown is read again. */
export function Confirm({
  label,
  title,
  text,
  fields = {},
  needsReason = false,
  isIncomplete = false,
  onConfirm,
}: {
  readonly label: string;
  readonly title: string;
  readonly text: string;
  /** What has to be filled in, by the API's names, each with its problem. */
  readonly fields?: Readonly<Record<string, (problem: string | undefined) => ReactNode>>;
  readonly needsReason?: boolean;
  /** Something in `fields` is missing. */
  readonly isIncomplete?: boolean;
  readonly onConfirm: (reason: string) => Promise<unknown>;
}) {
  const queries = useQueryClient();
  const [isOpen, dialog] = useDisclosure(false);
  const [reason, setReason] = useState("");
  const [error, setError] = useState<unknown>(null);
  // A dialog that closes still takes clicks, so an action that succeeded cannot be confirmed until it is opened again.
  const [phase, setPhase] = useState<"asking" | "running" | "done">("asking");
  const open = () => {
    setError(null);
    if (phase === "done") setPhase("asking");
    dialog.open();
  };
  const confirm = async () => {
    setPhase("running");
    setError(null);
    try {
      await onConfirm(reason.trim());
      await queries.invalidateQueries();
      setReason("");
      setPhase("done");
      dialog.close();
    } catch (problem) {
      noticeFailure(problem);
      setError(problem);
      setPhase("asking");
    }
  };
  return (
    <>
      <Button variant="default" onClick={open}>
        {label}
      </Button>
      <Modal opened={isOpen} onClose={dialog.close} title={title} centered>
        <Stack gap="md">
          <Text>{text}</Text>
          {Object.entries(fields).map(([name, show]) => (
            <div key={name}>{show(problemOf(error, name))}</div>
          ))}
          {needsReason && (
            <Textarea
              label="Reason"
              description="Kept with the event and in the audit"
              required
              data-autofocus
              value={reason}
              onChange={(event) => setReason(event.currentTarget.value)}
              error={problemOf(error, "reason")}
            />
          )}
          <FormProblem error={error} names={[...Object.keys(fields), ...(needsReason ? ["reason"] : [])]} />
          <Group justify="end" gap="xs">
            <Button variant="default" onClick={dialog.close}>
              Cancel
            </Button>
            <Button
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
