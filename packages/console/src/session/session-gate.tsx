import { Center, Loader, Modal } from "@mantine/core";
import { Fragment, type ReactNode, useCallback, useEffect, useMemo, useState } from "react";
import { api, CallError, rememberCsrf } from "../api/call.ts";
import type { Session } from "../api/operations.ts";
import { onSignedOut, queryClient } from "../api/query.ts";
import { Failure } from "../display/loaded.tsx";
import { SessionContext } from "./session.ts";
import { SignIn, Welcome } from "./sign-in.tsx";

interface State {
  readonly session?: Session;
  readonly isAsking?: boolean;
  /** Why there is no session, where a link should have begun one. */
  readonly refusal?: string;
  /** Why nobody knows who is signed in. */
  readonly error?: unknown;
  /** Why the sign-out failed. */
  readonly signOutError?: unknown;
}

const renewEveryMs = 5 * 60_000;

/**
 * Shows the page to a signed-in user, and the sign-in to others. When a session ends, the sign-in opens above the page:
 * typed text stays, and the same page is shown again. Another person gets the page anew.
 */
export function SessionGate({ children }: { readonly children: ReactNode }) {
  const [{ session, isAsking = false, refusal, error, signOutError }, setState] = useState<State>({});

  const begin = useCallback((next: Session) => {
    rememberCsrf(next.csrf);
    setState((state) => {
      // Somebody else's data must not flash up.
      if (state.session !== undefined && nameOf(state.session) !== nameOf(next)) queryClient.clear();
      return { session: next };
    });
    void queryClient.invalidateQueries();
  }, []);

  const resume = useCallback(async () => {
    const hasLink = linkInAddress() !== null;
    try {
      begin(await restore());
    } catch (problem) {
      if (problem instanceof CallError && problem.isSignedOut)
        setState((state) => ({ ...state, isAsking: true, ...(hasLink && { refusal: problem.message }) }));
      else setState((state) => (state.session === undefined ? { error: problem } : state));
    }
  }, [begin]);

  useEffect(() => void resume(), [resume]);
  useEffect(() => onSignedOut(() => setState((state) => ({ ...state, isAsking: true }))), []);
  const name = session && nameOf(session);
  useEffect(() => {
    if (name === undefined) return undefined;
    const renew = async () => {
      const found = await api.getSession();
      // Somebody else may have signed in beside this page.
      if (nameOf(found) === name) rememberCsrf(found.csrf);
      else await resume();
    };
    const timer = setInterval(() => {
      if (!document.hidden) renew().catch(() => undefined);
    }, renewEveryMs);
    return () => clearInterval(timer);
  }, [name, resume]);

  const signOut = useCallback(async () => {
    try {
      await api.signOut();
      queryClient.clear();
      setState({ isAsking: true });
    } catch (problem) {
      setState((state) => ({ ...state, signOutError: problem }));
    }
  }, []);
  const value = useMemo(() => session && { session, signOut: () => void signOut() }, [session, signOut]);

  if (error !== undefined)
    return (
      <Center h="100vh">
        <Failure
          error={error}
          onRetry={() => {
            setState({});
            void resume();
          }}
        />
      </Center>
    );
  if (value === undefined) {
    return isAsking ? (
      <Welcome>
        <SignIn onSignedIn={begin} refusal={refusal} />
      </Welcome>
    ) : (
      <Center h="100vh">
        <Loader role="status" aria-label="Loading" />
      </Center>
    );
  }
  return (
    <SessionContext value={value}>
      <Fragment key={name}>{children}</Fragment>
      <Modal
        opened={signOutError !== undefined}
        onClose={() => setState((state) => ({ ...state, signOutError: undefined }))}
        title="You may still be signed in"
        centered
      >
        <Failure error={signOutError} onRetry={() => void signOut()} />
      </Modal>
      <Modal
        opened={isAsking}
        onClose={() => undefined}
        withCloseButton={false}
        title="Your session has ended"
        centered
        // Above a dialog that asked for what the session no longer allows.
        zIndex={400}
      >
        <SignIn onSignedIn={begin} note="Sign in again: the page stays as you left it." />
      </Modal>
    </SessionContext>
  );
}

/** A link's session, or the one that the cookie holds; the sandbox begins one by itself. */
async function restore(): Promise<Session> {
  const link = linkInAddress();
  if (link !== null) {
    // It is out of the address before anything else happens: a copied address must not open the view.
    history.replaceState(null, "", location.pathname + location.search);
    return await api.signIn({ token: link });
  }
  try {
    return await api.getSession();
  } catch (error) {
    if (!(error instanceof CallError && error.isSignedOut)) throw error;
    return await api.signIn();
  }
}

function linkInAddress(): string | null {
  return new URLSearchParams(location.hash.slice(1)).get("view");
}

function nameOf(session: Session): string {
  return session.kind === "partner" ? `partner ${session.partnerId}` : `operator ${session.name}`;
}
