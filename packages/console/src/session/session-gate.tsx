import { Center, Loader, Modal } from "@mantine/core";
import { type ReactNode, useCallback, useEffect, useMemo, useState } from "react";
import { api, CallError, rememberCsrf } from "../api/call.ts";
import type { Session } from "../api/operations.ts";
import { onSignedOut, queryClient } from "../api/query.ts";
import { Failure } from "../display/failure.tsx";
import { SessionContext } from "./session.ts";
import { SignIn } from "./sign-in.tsx";

type State = { readonly session?: Session; readonly isAsking?: boolean; readonly error?: unknown };

const renewEveryMs = 5 * 60_000;

/**
 * Shows the page to a signed-in user, and the sign-in to others. When a session ends, the sign-in opens above the page:
 * typed text stays, and the same page is shown again.
 */
export function SessionGate({ children }: { readonly children: ReactNode }) {
  const [{ session, isAsking = false, error }, setState] = useState<State>({});

  const begin = useCallback((next: Session) => {
    rememberCsrf(next.csrf);
    setState((state) => {
      // Somebody else's data must not flash up.
      if (state.session !== undefined && nameOf(state.session) !== nameOf(next)) queryClient.clear();
      return { session: next };
    });
    void queryClient.invalidateQueries();
  }, []);

  const look = useCallback(async () => {
    try {
      begin(await restore());
    } catch (problem) {
      if (problem instanceof CallError && problem.isSignedOut) setState((state) => ({ ...state, isAsking: true }));
      else setState((state) => (state.session === undefined ? { error: problem } : state));
    }
  }, [begin]);

  useEffect(() => void look(), [look]);
  useEffect(() => onSignedOut(() => setState((state) => ({ ...state, isAsking: true }))), []);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden)
        api.getSession().then(
          ({ csrf }) => rememberCsrf(csrf),
          () => undefined,
        );
    }, renewEveryMs);
    return () => clearInterval(timer);
  }, []);

  const value = useMemo(() => {
    const signOut = async () => {
      await api.signOut().catch(() => undefined);
      queryClient.clear();
      setState({ isAsking: true });
    };
    return session && { session, signOut: () => void signOut() };
  }, [session]);

  if (error !== undefined)
    return (
      <Center h="100vh">
        <Failure
          error={error}
          onRetry={() => {
            setState({});
            void look();
          }}
        />
      </Center>
    );
  if (value === undefined) {
    return <Center h="100vh">{isAsking ? <SignIn onSignedIn={begin} /> : <Loader aria-label="Loading" />}</Center>;
  }
  return (
    <SessionContext value={value}>
      {children}
      <Modal
        opened={isAsking}
        onClose={() => undefined}
        withCloseButton={false}
        title="Your session has ended"
        centered
      >
        <SignIn onSignedIn={begin} note="Sign in again: the page stays as you left it." />
      </Modal>
    </SessionContext>
  );
}

/** The session that the cookie holds; the sandbox begins one by itself. */
async function restore(): Promise<Session> {
  try {
    return await api.getSession();
  } catch (error) {
    if (!(error instanceof CallError && error.isSignedOut)) throw error;
    return await api.signIn();
  }
}

function nameOf(session: Session): string {
  return session.kind === "partner" ? `partner ${session.partnerId}` : `operator ${session.name}`;
}
