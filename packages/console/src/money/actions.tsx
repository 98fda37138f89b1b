import { Group } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { api } from "../api/call.ts";
import { Confirm } from "../display/confirm.tsx";
import { useMay } from "../session/session.ts";

/** Retries a Reversal that is done: the acquirer has the transaction in its books all the same. */
export function RetryDoneReversal({ id }: { readonly id: string }) {
  const mayAct = useMay("operator");
  const refresh = useRefresh();
  if (!mayAct) return null;
  return (
    <Confirm
      label="Reverse again"
      title="Send this Reversal to the acquirer once more?"
      text="It is done here. Send it again if the acquirer still has the transaction in its books."
      needsReason
      onConfirm={(reason) => api.retryReversal(id, { reason }).then(refresh)}
    />
  );
}

/** Retries or resolves a parked Reversal. */
export function ReversalActions({ id }: { readonly id: string }) {
  const mayAct = useMay("operator");
  const refresh = useRefresh();
  if (!mayAct) return null;
  return (
    <Group gap="xs" justify="end" wrap="nowrap">
      <Confirm
        label="Retry"
        title="Send this Reversal to the acquirer again?"
        text="The acquirer is asked again to reverse one transaction. Nothing is sent to the partner."
        onConfirm={() => api.retryReversal(id, {}).then(refresh)}
      />
      <Confirm
        label="Resolve"
        title="End this Reversal manually?"
        text="The service then treats the transaction as not charged. Ask the acquirer first."
        needsReason
        onConfirm={(reason) => api.resolveReversal(id, { reason }).then(refresh)}
      />
    </Group>
  );
}

/** Ends a settlement that the acquirer does not answer. */
export function AbortSettlement({ id }: { readonly id: string }) {
  const mayAct = useMay("operator");
  const refresh = useRefresh();
  if (!mayAct) return null;
  return (
    <Confirm
      label="Abort"
      title="End this settlement without an answer?"
      text="It ends with code 96, its terminal's batch is open again, and an IPN says so."
      needsReason
      onConfirm={(reason) => api.abortSettlement(id, { reason }).then(refresh)}
    />
  );
}

function useRefresh(): () => Promise<void> {
  const queries = useQueryClient();
  return () => queries.invalidateQueries();
}
