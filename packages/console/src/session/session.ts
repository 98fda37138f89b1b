import { createContext, useContext } from "react";
import type { PartnerApiKeyToMake, Session } from "../api/operations.ts";

export type SessionScope = PartnerApiKeyToMake["scopes"][number];

interface SessionValue {
  readonly session: Session;
  signOut(): void;
}

export const SessionContext = createContext<SessionValue | undefined>(undefined);

/** The current session. Below the gate there always is one. */
export function useSession(): SessionValue {
  const value = useContext(SessionContext);
  if (value === undefined) throw new Error("This part of the page is outside the session gate.");
  return value;
}

/** The rights of operators: each role includes the ones before it. */
const roles = ["viewer", "operator", "admin"];

/** Whether this session may act on notifications and endpoints: by its role, or its API key's scope `manage`. */
export function useMayManage(): boolean {
  const mayOperate = useMay("operator");
  return useHasScope("manage") || mayOperate;
}

/** Whether a partner's session has this scope; an operator's has none. */
export function useHasScope(scope: SessionScope): boolean {
  const { session } = useSession();
  return session.kind === "partner" && (session.scopes === null || session.scopes.includes(scope));
}

export function useMay(role: "viewer" | "operator" | "admin"): boolean {
  const { session } = useSession();
  return session.kind === "operator" && roles.indexOf(session.role) >= roles.indexOf(role);
}
