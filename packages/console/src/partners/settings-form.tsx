import { Button, Group, NumberInput, Select, SimpleGrid, Stack, Textarea, TextInput } from "@mantine/core";
import { ciphers, encodings, wireNames } from "@paybell/contract";
import { useState } from "react";
import { CallError } from "../api/call.ts";
import type { Partner, PartnerRegistration } from "../api/operations.ts";
import { Failure } from "../display/failure.tsx";
import { textOfUrls, urlsOfText } from "./urls-by-command.tsx";

type Input = PartnerRegistration;

interface Form {
  readonly initial?: Partner["settings"];
  readonly submit: string;
  readonly isPending: boolean;
  readonly error: unknown;
  readonly onSubmit: (input: Input) => void;
  /** The state forbids changes. */
  readonly isReadOnly?: boolean;
}

const lines = (text: string) => text.split(/[\s,]+/).filter((one) => one !== "");
const texts = {
  name: "",
  callBackUrl: "",
  callBackUrlByCommand: "",
  callBackUrlChange: "",
  callbackAddresses: "",
  callingAddresses: "",
  timeZone: "",
  retry: "",
  cipher: "",
  encoding: "",
  wireNames: "",
  ordering: "",
  terminals: "",
  settlementTotal: "",
  transactionTime: "",
  swipeTypes: "",
};
type Texts = { [Name in keyof typeof texts]: string };

/** A partner's settings. The API checks them, and its messages are shown at their fields. */
export function SettingsForm({ initial, submit, isPending, error, onSubmit, isReadOnly = false }: Form) {
  const [values, setValues] = useState<Texts>(() => fromSettings(initial));
  const [maxInFlight, setMaxInFlight] = useState<string | number>(initial?.maxInFlight ?? "");
  const [maxPerSecond, setMaxPerSecond] = useState<string | number>(initial?.maxPerSecond ?? "");
  const problems = error instanceof CallError ? error.fields : {};
  const errorOf = (name: string) =>
    Object.entries(problems)
      .flatMap(([field, message]) =>
        field === name || field.startsWith(`${name}[`) || field.startsWith(`${name}.`) ? [message] : [],
      )
      .join(" ") || undefined;
  const text = (name: keyof Texts) => ({
    value: values[name],
    onChange: (event: { readonly currentTarget: { readonly value: string } }) => {
      const { value } = event.currentTarget;
      setValues((before) => ({ ...before, [name]: value }));
    },
    error: errorOf(name),
    readOnly: isReadOnly,
  });
  const choice = (name: keyof Texts, data: readonly string[]) => ({
    data: [...data],
    value: values[name] === "" ? null : values[name],
    onChange: (value: string | null) => setValues((before) => ({ ...before, [name]: value ?? before[name] })),
    error: errorOf(name),
    allowDeselect: false,
    placeholder: "The default",
    readOnly: isReadOnly,
  });
  const isShownAtField = Object.keys(problems).length > 0;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit(toInput(values, maxInFlight, maxPerSecond, initial));
      }}
    >
      <Stack gap="md" maw={900}>
        <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md" verticalSpacing="sm">
          <TextInput label="Name" required {...text("name")} />
          <TextInput
            label="Callback URL"
            description="Used for commands without their own URL"
            {...text("callBackUrl")}
          />
          <Textarea
            label="URLs by command"
            description="Such as SETTLEMENT https://books.example/ipn, one per line; the others go to the callback URL"
            autosize
            minRows={2}
            {...text("callBackUrlByCommand")}
          />
          <Textarea
            label="Callback addresses"
            description="CIDR blocks of its endpoint's addresses, one per line"
            required
            autosize
            minRows={2}
            {...text("callbackAddresses")}
          />
          <Textarea
            label="Calling addresses"
            description="CIDR blocks from which it calls the API, one per line"
            autosize
            minRows={2}
            {...text("callingAddresses")}
          />
          <Select label="Cipher" {...choice("cipher", ciphers)} />
          <Select label="Encoding" {...choice("encoding", encodings)} />
          <Select label="Names on the wire" {...choice("wireNames", wireNames)} />
          <Select label="Order of a chain's IPNs" {...choice("ordering", ["chain", "none"])} />
          <Select label="Who changes the callback URL" {...choice("callBackUrlChange", ["operator", "partner"])} />
          <Select label="Terminals" {...choice("terminals", ["open", "registered"])} />
          <Select label="Settlement's totalAmount" {...choice("settlementTotal", ["sum", "net"])} />
          <Select label="transaction_time" {...choice("transactionTime", ["table", "iso8601"])} />
          <Select label="Swipe types" {...choice("swipeTypes", ["code", "contact"])} />
          <TextInput label="Time zone" description="IANA name" {...text("timeZone")} />
          <TextInput
            label="Retry schedule"
            description="Seconds after each failed attempt, separated by commas; empty: the service's"
            {...text("retry")}
          />
          <NumberInput
            label="POSTs in flight, at most"
            value={maxInFlight}
            onChange={setMaxInFlight}
            error={errorOf("maxInFlight")}
            allowDecimal={false}
            readOnly={isReadOnly}
          />
          <NumberInput
            label="POSTs a second, at most"
            description="Empty: no limit"
            value={maxPerSecond}
            onChange={setMaxPerSecond}
            error={errorOf("maxPerSecond")}
            allowDecimal={false}
            readOnly={isReadOnly}
          />
        </SimpleGrid>
        {error != null && !isShownAtField && <Failure error={error} />}
        {!isReadOnly && (
          <Group>
            <Button type="submit" size="sm" loading={isPending}>
              {submit}
            </Button>
            {isShownAtField && (
              <span className="state" data-tone="bad" role="alert">
                Nothing was changed: correct the fields that are marked.
              </span>
            )}
          </Group>
        )}
      </Stack>
    </form>
  );
}

function fromSettings(settings: Partner["settings"] | undefined): Texts {
  if (settings === undefined) return texts;
  return {
    name: settings.name,
    callBackUrl: settings.callBackUrl ?? "",
    callBackUrlByCommand: textOfUrls(settings.callBackUrlByCommand),
    callBackUrlChange: settings.callBackUrlChange,
    callbackAddresses: settings.callbackAddresses.join("\n"),
    callingAddresses: settings.callingAddresses.join("\n"),
    timeZone: settings.timeZone,
    retry: settings.retry.join(", "),
    cipher: settings.cipher,
    encoding: settings.encoding,
    wireNames: settings.wireNames,
    ordering: settings.ordering,
    terminals: settings.terminals,
    settlementTotal: settings.settlementTotal,
    transactionTime: settings.transactionTime,
    swipeTypes: settings.swipeTypes,
  };
}

/** Empty fields are left out; text that is not a number is sent as typed, so that the API reports it. */
function toInput(
  values: Texts,
  maxInFlight: string | number,
  maxPerSecond: string | number,
  initial: Partner["settings"] | undefined,
): Input {
  const { callBackUrl, callBackUrlByCommand, callbackAddresses, callingAddresses, retry, ...plain } = values;
  const input: Record<string, unknown> = {
    ...Object.fromEntries(Object.entries(plain).filter(([name, value]) => name === "name" || value !== "")),
    callBackUrl: callBackUrl.trim() === "" ? null : callBackUrl.trim(),
    callBackUrlByCommand: urlsOfText(callBackUrlByCommand),
    callbackAddresses: lines(callbackAddresses),
    callingAddresses: lines(callingAddresses),
  };
  const schedule = lines(retry);
  if (schedule.length > 0) input["retry"] = schedule.map((one) => (/^\d+$/.test(one) ? Number(one) : one));
  if (maxInFlight !== "") input["maxInFlight"] = maxInFlight;
  if (maxPerSecond !== "") input["maxPerSecond"] = maxPerSecond;
  else if (initial?.maxPerSecond != null) input["maxPerSecond"] = null;
  return input as Input;
}
