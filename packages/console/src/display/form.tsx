import { Alert, Button, Group, Stack } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { fieldProblems } from "../api/call.ts";
import { Failure } from "./loaded.tsx";

type Texts = Readonly<Record<string, string>>;

/**
 * What is typed into a form, by the API's names of its fields, and the call that sends it. `call` may get what was
 * clicked, where a form has several buttons. What was answered is forgotten with the form: it may be a secret.
 */
export function useForm<Values extends Texts, Answer, Action = undefined>(
  initial: Values,
  call: (values: Values, action: Action | undefined) => Promise<Answer>,
  onAnswer?: (answer: Answer, form: { set(changed: Partial<Values>): void }) => unknown,
) {
  const [values, setValues] = useState(initial);
  const set = (changed: Partial<Values>) => setValues((others) => ({ ...others, ...changed }));
  const sending = useMutation({
    // The values come with the click: those of an earlier rendering may be older than what was typed.
    mutationFn: async (sent: { readonly values: Values; readonly action: Action | undefined }) =>
      await call(sent.values, sent.action),
    onSuccess: (answer) => onAnswer?.(answer, { set }),
    gcTime: 0,
  });
  type Name = keyof Values & string;
  const setOne = (name: string, value: string) => set({ [name]: value } as Partial<Values>);
  const common = (name: Name) => ({ value: values[name], error: problemOf(sending.error, name) });
  return {
    ...{ values, set, sending },
    send: (action?: Action) => sending.mutate({ values, action }),
    /** For an input of text: its value, its changes, and its problem beside it. */
    text: (name: Name) => ({
      ...common(name),
      onChange: (event: { readonly currentTarget: { readonly value: string } }) =>
        setOne(name, event.currentTarget.value),
    }),
    /** The same for a choice, which cannot be taken back. */
    choice: (name: Name) => ({
      ...common(name),
      allowDeselect: false,
      onChange: (value: string | null) => value !== null && setOne(name, value),
    }),
    /** The same for a whole number: what is out of its range stays, for the API to refuse. */
    number: (name: Name) => ({
      ...common(name),
      allowDecimal: false,
      clampBehavior: "none" as const,
      onChange: (value: string | number) => setOne(name, String(value)),
    }),
  };
}

/** A number as it was typed. What is none is sent as it is: the API says so at the field. */
export function numberOf(text: string): number {
  return (/^-?\d+$/.test(text) ? Number(text) : text) as number;
}

/** What the API says of a field and of its parts, such as `retry[2]`. */
export function problemOf(error: unknown, name: string): string | undefined {
  return (
    Object.entries(fieldProblems(error))
      .flatMap(([field, message]) => (isOf(name, field) ? [message] : []))
      .join(" ") || undefined
  );
}

export function hasFieldProblems(error: unknown): boolean {
  return Object.keys(fieldProblems(error)).length > 0;
}

function isOf(name: string, field: string): boolean {
  return field === name || field.startsWith(`${name}[`) || field.startsWith(`${name}.`);
}

/**
 * A form whose problems are the API's: each at its field, the first of which gets the focus, and all others above the
 * button. The browser's own checks are off: what they say vanishes, and they know fewer rules.
 */
export function Form({
  of: { values, sending, send },
  submit,
  done,
  isInRow = false,
  actions,
  children,
}: {
  readonly of: {
    readonly values: Texts;
    readonly sending: { readonly error: unknown; readonly isPending: boolean };
    send(): void;
  };
  /** The word on its button. Without one, nothing can be sent. */
  readonly submit: string | undefined;
  /** Says what the last call did. */
  readonly done?: ReactNode;
  /** The button is beside the fields. */
  readonly isInRow?: boolean;
  /** More buttons. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}) {
  const { error, isPending } = sending;
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (error !== null) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [error]);
  const buttons = submit !== undefined && (
    <Group gap="xs" {...(isInRow && { className: "beside-fields" })}>
      <Button type="submit" loading={isPending}>
        {submit}
      </Button>
      {actions}
    </Group>
  );
  return (
    <form
      ref={form}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (!isPending && submit !== undefined) send();
      }}
    >
      <Stack gap="sm">
        {isInRow ? (
          <Group gap="sm" align="start">
            {children}
            {buttons}
          </Group>
        ) : (
          children
        )}
        <FormProblem error={error} names={Object.keys(values)} />
        {!isInRow && buttons}
        {done && (
          <Alert color="green" variant="light" p="xs" role="status">
            {done}
          </Alert>
        )}
      </Stack>
    </form>
  );
}

/** Of an error what is not said at the fields with these names; else that they have to be corrected. */
export function FormProblem({ error, names }: { readonly error: unknown; readonly names: readonly string[] }) {
  if (error === null) return null;
  const isAtField = (field: string) => names.some((name) => isOf(name, field));
  const fields = Object.keys(fieldProblems(error));
  if (fields.length === 0 || !fields.every(isAtField)) return <Failure error={error} isAtField={isAtField} />;
  return (
    <span className="state" data-tone="bad" role="alert">
      Correct what is marked: nothing was done.
    </span>
  );
}
