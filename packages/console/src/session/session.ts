import { createContext, useContext } from "react";
import type { Session } from "../api/operations.ts";

export interface SessionValue {
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

export function useMay(role: "viewer" | "operator" | "admin"): boolean {
  const { session } = useSession();
  return session.kind === "operator" && roles.indexOf(session.role) >= roles.indexOf(role);
}
