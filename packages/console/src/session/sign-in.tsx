import { Alert, Button, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { api, CallError, FieldError } from "../api/call.ts";
import type { Session } from "../api/operations.ts";

/** Whether the service leads operators to an OpenID provider, and whether that is the only way. */
const oidc = document.querySelector<HTMLMetaElement>('meta[name="paybell-oidc"]')?.content;
const offersOidc = oidc === "offered" || oidc === "only";

/** Why the way back from the provider ended here, by its reason in the address. */
const refusals: Readonly<Record<string, string>> = {
  not_begun: "The sign-in took longer than ten minutes, or began in another browser. Sign in again.",
  cancelled: "The identity provider did not let you in.",
  not_verified:
    "The identity provider's answer could not be verified. Sign in again; if that does not help, tell an admin.",
  no_role: "You have no role here. An admin of the identity provider can give you one.",
  no_name: "The identity provider did not send your name. Tell an admin: it is in the service's log.",
  unreachable: "The identity provider cannot be reached. Try again in a minute.",
};

/** The page on which the person is now: the provider leads back there. */
function pageToShow(): string {
  const { pathname, searchParams } = new URL(location.href);
  searchParams.delete("sign-in");
  return encodeURIComponent(searchParams.size === 0 ? pathname : `${pathname}?${searchParams.toString()}`);
}

/** Sign-in at the provider, or by token: the session's cookie replaces it, and the page forgets it. */
export function SignIn({
  onSignedIn,
  note,
  refusal: linkRefusal,
}: {
  readonly onSignedIn: (session: Session) => void;
  readonly note?: string;
  /** Why a link did not sign in. */
  readonly refusal?: string | undefined;
}) {
  const [token, setToken] = useState("");
  const signIn = useMutation({
    mutationFn: async () => {
      if (token.trim() === "") throw new FieldError({ token: "Type or paste a token." });
      return await api.signIn({ token: token.trim() });
    },
    onSuccess: (session) => {
      setToken("");
      onSignedIn(session);
    },
  });
  const oidcRefusal = offersOidc ? refusals[new URLSearchParams(location.search).get("sign-in") ?? ""] : undefined;
  const refusal = linkRefusal ?? oidcRefusal;
  const error = signIn.error instanceof CallError ? signIn.error : undefined;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        signIn.mutate();
      }}
    >
      <Stack w={note === undefined ? 360 : "100%"} maw="90vw" gap="md">
        {note === undefined ? <Title order={1}>Sign in</Title> : <Text c="dimmed">{note}</Text>}
        {refusal !== undefined && (
          <Alert color="gray" variant="light" p="xs" role="alert">
            {refusal}
          </Alert>
        )}
        {offersOidc && (
          <Button size="sm" component="a" href={`/console/sign-in?page=${pageToShow()}`}>
            Sign in with your organisation
          </Button>
        )}
        {oidc !== "only" && (
          <PasswordInput
            size="sm"
            label="Token"
            description="An operator's token, or a partner's API key"
            value={token}
            onChange={(event) => setToken(event.currentTarget.value)}
            autoComplete="off"
            data-autofocus
            autoFocus={!offersOidc}
            error={signIn.error?.message}
          />
        )}
        {error !== undefined && error.code !== "unauthorized" && (
          <Alert color="gray" variant="light" p="xs">
            {error.remedy}
          </Alert>
        )}
        {oidc !== "only" && (
          <Button size="sm" type="submit" loading={signIn.isPending} variant={offersOidc ? "default" : "filled"}>
            {offersOidc ? "Sign in with the token" : "Sign in"}
          </Button>
        )}
      </Stack>
    </form>
  );
}

/** The first page: what this is, and the way in beside it. */
export function Welcome({ children }: { readonly children: ReactNode }) {
  return (
    <main className="welcome">
      <section className="story" aria-label="Paybell">
        <Bell size={56} />
        <p className="claim">Every payment notified. None lost.</p>
        <p>
          Who received what, when, and if not, why: for each notification, from its command to the answer that counted.
        </p>
      </section>
      <div className="way-in">{children}</div>
    </main>
  );
}

/** The mark of Paybell, in the colour of the text around it. */
export function Bell({ size }: { readonly size: number }) {
  return (
    <svg viewBox="0 0 32 32" width={size} height={size} aria-hidden="true" className="bell">
      <rect width="32" height="32" rx="8" fill="currentColor" opacity="0.16" />
      <path
        d="M16 6.5c-4 0-6.5 3-6.5 7 0 5-2 6-2.5 8h18c-.5-2-2.5-3-2.5-8 0-4-2.5-7-6.5-7zM13.5 23.5a2.5 2.5 0 0 0 5 0z"
        fill="currentColor"
      />
    </svg>
  );
}
