import { Alert, Anchor, Button, Center, Group, Loader, Stack, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { Component, type ReactNode } from "react";
import { CallError } from "../api/call.ts";

/** Says what would be here, and how to make it appear. */
export type EmptyWords = readonly [title: string, text?: ReactNode];

/** What a query found, in each of its states. */
export function Loaded<Data>({
  of,
  missing,
  children,
}: {
  readonly of: {
    readonly isPending: boolean;
    readonly error: unknown;
    readonly data: Data | undefined;
    refetch(): unknown;
  };
  /** In place of the error, where the API knows no such id. */
  readonly missing?: EmptyWords;
  readonly children: (data: Data) => ReactNode;
}) {
  if (of.data !== undefined) return children(of.data);
  if (of.isPending) return <Loading />;
  if (missing !== undefined && isMissing(of.error)) return <Empty title={missing[0]}>{missing[1]}</Empty>;
  return <Failure error={of.error} onRetry={() => void of.refetch()} />;
}

export function Loading() {
  return (
    <Center py={48}>
      <Loader size="sm" role="status" aria-label="Loading" />
    </Center>
  );
}

/** In a panel it takes no more room than a row. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <Stack className="empty">
      <Text fw={600}>{title}</Text>
      {children !== undefined && (
        <Text c="dimmed" maw={460} component="div">
          {children}
        </Text>
      )}
    </Stack>
  );
}

/** There is nothing of this id, or it is no id. */
export function isMissing(error: unknown): boolean {
  return error instanceof CallError && [400, 404].includes(error.status);
}

/** An error in the API's own words, with each field's problem, what to do, and the id to quote. */
export function Failure({
  error,
  onRetry,
  isAtField = () => false,
}: {
  readonly error: unknown;
  readonly onRetry?: () => void;
  /** Whether the form shows the problem of this field beside it. */
  readonly isAtField?: (field: string) => boolean;
}) {
  const known = error instanceof CallError ? error : undefined;
  const problems = Object.entries(known?.fields ?? {}).filter(
    ([field, message]) => !isAtField(field) && message !== known?.message,
  );
  return (
    <Alert
      color="red"
      variant="light"
      icon={<IconAlertTriangle size={16} />}
      title={known?.message ?? "The page failed."}
      role="alert"
    >
      <Stack gap="xs">
        {problems.map(([field, message]) => (
          <Text key={field} className="wraps">
            {message}
          </Text>
        ))}
        <Text>{known?.remedy ?? (error instanceof Error ? error.message : String(error))}</Text>
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
            <Button variant="default" onClick={onRetry}>
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
    if (error === undefined) return this.props.children;
    return <Failure error={error} onRetry={() => this.setState({ error: undefined })} />;
  }
}
