import { useQuery } from "@tanstack/react-query";
import { api } from "../api/call.ts";
import type { Partner } from "../api/operations.ts";
import { useSession } from "../session/session.ts";

const pageRows = 500;

/** All partners: their names are shown next to everything else. */
export function usePartners() {
  const isOperator = useSession().session.kind === "operator";
  return useQuery({ queryKey: ["partners"], queryFn: all, enabled: isOperator, staleTime: 30_000 });
}

async function all(): Promise<readonly Partner[]> {
  const partners: Partner[] = [];
  let after: string | undefined;
  do {
    const page = await api.listPartners({ limit: pageRows, ...(after !== undefined && { after }) });
    partners.push(...page.items);
    after = page.next ?? undefined;
  } while (after !== undefined);
  return partners;
}
