import { responseMeaning } from "@paybell/contract";
import { useQuery } from "@tanstack/react-query";
import { api } from "../api/call.ts";
import type { LinkedTransaction, TransactionDetail } from "../api/operations.ts";
import { isMissing } from "../display/loaded.tsx";
import { State, type StateInWords } from "../display/state.tsx";
import { clockTime, useNow } from "../display/time.tsx";
import { useSession } from "../session/session.ts";

const refreshMs = 5_000;

export function useChain(id: string, isEnabled = true) {
  return useQuery({
    queryKey: ["chain", id],
    queryFn: async () => (await api.getChain(id)).items,
    refetchInterval: refreshMs,
    enabled: isEnabled,
  });
}

export function useOwnTransaction(id: string, isEnabled = true) {
  return useQuery({
    queryKey: ["own-transaction", id],
    queryFn: () => api.getTransaction(id),
    refetchInterval: refreshMs,
    enabled: isEnabled,
  });
}

type Batch = { readonly batchNo: string; readonly state: "open" | "closing" | "closed"; readonly closedAt?: string };

/** The operator's look at a batch. Null until it is known. */
export function useBatch({ batchId, batchNo }: Pick<LinkedTransaction, "batchId" | "batchNo">): Batch | null {
  const found = useQuery({
    queryKey: ["its-batch", batchId],
    queryFn: () => api.inspectBatch(batchId ?? ""),
    retry: false,
    enabled: batchId !== null,
  });
  if (found.data !== undefined) return { ...found.data, state: "closed" };
  return isMissing(found.error) ? { batchNo: batchNo ?? "", state: "open" } : null;
}

/** Whether the money of a transaction moved, in a sentence. */
export function Moved({ id }: { readonly id: string }) {
  return useSession().session.kind === "operator" ? <MovedOfAny id={id} /> : <OwnMoved id={id} />;
}

function MovedOfAny({ id }: { readonly id: string }) {
  const chain = useChain(id).data ?? [];
  const one = chain.find((item) => item.id === id);
  const batch = useBatch(one ?? { batchId: null, batchNo: null });
  const followers = chain.filter(({ originalId }) => originalId === id);
  const now = useNow();
  return one && <State {...movedInWords(one, followers, batch, now)} />;
}

function OwnMoved({ id }: { readonly id: string }) {
  const now = useNow();
  const one: TransactionDetail | undefined = useOwnTransaction(id).data;
  if (one === undefined) return null;
  const { command, status: state, reversal, batch } = one;
  const { isoResponseCode = "" } = one as { readonly isoResponseCode?: string };
  const followers = one.chain.filter((item) => item.id > id).map((item) => ({ ...item, state: item.status }));
  return <State {...movedInWords({ command, state, reversal, isoResponseCode }, followers, batch, now)} />;
}

/** By its own state, by those that refer to it, and by its batch. */
export function movedInWords(
  one: Pick<LinkedTransaction, "command" | "state" | "isoResponseCode" | "reversal">,
  followers: readonly Pick<LinkedTransaction, "command" | "state">[],
  batch: Batch | null,
  nowMs: number,
): StateInWords {
  const good = (command: string) => followers.some((item) => item.command === command && item.state === "SUCCESS");
  if (one.reversal === "parked")
    return { tone: "bad", word: "In doubt: its Reversal was given up, and the acquirer may hold it" };
  if (one.reversal === "pending") return { tone: "wait", word: "In doubt: it is being reversed at the acquirer" };
  if (one.reversal === "done") return { tone: "quiet", word: "Reversed at the acquirer: no money moved" };
  if (one.reversal === "stands" && !good("VOID")) {
    const code = one.isoResponseCode || "96";
    const told = code === "00" ? "" : `; its IPN said ${code}`;
    return { tone: "bad", word: `Stands: the acquirer refuses to undo it${told}` };
  }
  if (one.state === "INIT") return { tone: "wait", word: "Under way: the acquirer has not answered" };
  if (one.state === "ERROR") {
    const code = one.isoResponseCode || "96";
    return { tone: "bad", word: `Declined: ${code} ${responseMeaning(code)}; no money moved` };
  }
  if (good("VOID")) return { tone: "quiet", word: "Approved, and undone by a Void since" };
  if (good("REVERSAL")) return { tone: "quiet", word: "Approved, and undone by a Reversal since" };
  if (good("PREAUTH_COMPLETE")) return { tone: "good", word: "Approved, and completed since" };
  if (one.command === "PREAUTH") return { tone: "good", word: "Approved: the amount is held" };
  return { tone: "good", word: `Approved by the acquirer${batch === null ? "" : settledInWords(batch, nowMs)}` };
}

function settledInWords({ batchNo, state, closedAt }: Batch, nowMs: number): string {
  if (state === "open") return `; not settled yet: its batch ${batchNo} is open`;
  if (state === "closing") return `; its batch ${batchNo} is being settled`;
  const at = closedAt === undefined ? "" : `, ${clockTime(Date.parse(closedAt), nowMs)}`;
  return `, and settled in batch ${batchNo}${at}`;
}
