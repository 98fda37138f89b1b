import { Alert, Button, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError, api } from "../api/call.ts";
import type { Session } from "../api/operations.ts";

/** Sign-in by token: the session's cookie replaces it, and the page forgets it. */
export function SignIn({
  onSignedIn,
  note,
}: {
  readonly onSignedIn: (session: Session) => void;
  readonly note?: string;
}) {
  const [token, setToken] = useState("");
  const signIn = useMutation({
    mutationFn: () => api.signIn({ token: token.trim() }),
    onSuccess: (session) => {
      setToken("");
      onSignedIn(session);
    },
  });
  const error = signIn.error instanceof ApiError ? signIn.error : undefined;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (token.trim() !== "") signIn.mutate();
      }}
    >
      <Stack w={360} maw="90vw" gap="md">
        {note === undefined ? <Title order={1}>Paybell</Title> : <Text c="dimmed">{note}</Text>}
        <PasswordInput
          label="Token"
          description="An operator's token, or a partner's API key"
          value={token}
          onChange={(event) => setToken(event.currentTarget.value)}
          autoComplete="off"
          data-autofocus
          autoFocus
          error={error?.message}
        />
        {error !== undefined && (
          <Alert color="gray" variant="light" p="xs">
            {error.remedy}
          </Alert>
        )}
        <Button type="submit" loading={signIn.isPending}>
          Sign in
        </Button>
      </Stack>
    </form>
  );
}
