import { createContext, useContext } from "react";
import type { Session } from "../api/operations.ts";

export interface SessionValue {
  readonly session: Session;
  signOut(): void;
}

export const SessionContext = createContext<SessionValue | undefined>(undefined);

/** Who is signed in. Below the gate there is always somebody. */
export function useSession(): SessionValue {
  const value = useContext(SessionContext);
  if (value === undefined) throw new Error("This part of the page stands outside of the session's gate.");
  return value;
}

/** What an operator may: each role may what those before it may. */
const roles = ["viewer", "operator", "admin"];

export function useMay(role: "viewer" | "operator" | "admin"): boolean {
  const { session } = useSession();
  return session.kind === "operator" && roles.indexOf(session.role) >= roles.indexOf(role);
}
