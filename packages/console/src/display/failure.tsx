import { Alert, Anchor, Button, Group, Stack, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { Component, type ReactNode } from "react";
import { CallError } from "../api/call.ts";

/** There is nothing of this id, or it is no id. */
export function isMissing(error: unknown): boolean {
  return error instanceof CallError && [400, 404].includes(error.status);
}

/** An error in the API's own words, with what to do and the id to quote. */
export function Failure({ error, onRetry }: { readonly error: unknown; readonly onRetry?: () => void }) {
  const known = error instanceof CallError ? error : undefined;
  return (
    <Alert
      color="red"
      variant="light"
      icon={<IconAlertTriangle size={16} />}
      title={known?.message ?? "The page failed."}
      role="alert"
    >
      <Stack gap="xs">
        <Text size="sm">{known?.remedy ?? (error instanceof Error ? error.message : String(error))}</Text>
        {known !== undefined && known.instance !== "" && (
          <Text size="xs" className="mono wraps">
            <Anchor href={known.documentation} target="_blank" inherit underline="always">
              {known.code}
            </Anchor>{" "}
            · {known.instance}
          </Text>
        )}
        {onRetry !== undefined && known?.status !== 403 && (
          <Group>
            <Button size="xs" variant="default" onClick={onRetry}>
              Try again
            </Button>
          </Group>
        )}
      </Stack>
    </Alert>
  );
}

interface Props {
  readonly children: ReactNode;
}

/** Shows an error in place of the part that failed; the rest of the page continues. */
export class ErrorBoundary extends Component<Props, { readonly error?: unknown }> {
  override state: { readonly error?: unknown } = {};

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    return error === undefined ? (
      this.props.children
    ) : (
      <Failure error={error} onRetry={() => this.setState({ error: undefined })} />
    );
  }
}
