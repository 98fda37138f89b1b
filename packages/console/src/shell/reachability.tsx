import { Alert } from "@mantine/core";
import { IconPlugConnectedX } from "@tabler/icons-react";
import { useQueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { CallError } from "../api/call.ts";

/** Says that the service cannot be reached, or cannot answer now, while the page shows what it knew last. */
export function Reachability() {
  const cache = useQueryClient().getQueryCache();
  const isAway = useSyncExternalStore(
    (changed) => cache.subscribe(changed),
    () =>
      cache.getAll().some((query) => {
        const reason = query.state.fetchFailureReason;
        // Nobody asks again for what the page no longer shows: its failure is of long ago.
        return query.isActive() && reason instanceof CallError && (reason.status === 0 || reason.status === 503);
      }),
  );
  if (!isAway) return null;
  return (
    <Alert color="accent" variant="light" mb="md" icon={<IconPlugConnectedX size={16} />} role="status">
      The service does not answer. What you see is what was known last; the page tries again by itself.
    </Alert>
  );
}
