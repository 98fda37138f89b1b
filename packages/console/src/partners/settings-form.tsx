import { Button, Group, NumberInput, Select, SimpleGrid, Stack, Textarea, TextInput } from "@mantine/core";
import { ciphers, encodings, fieldSets, wireNames } from "@paybell/contract";
import { type ReactNode, useState } from "react";
import { CallError } from "../api/call.ts";
import type { Partner, PartnerDefaults, PartnerRegistration } from "../api/operations.ts";
import { Failure } from "../display/failure.tsx";
import { Panel } from "../display/page.tsx";

type Input = PartnerRegistration;

interface Form {
  /** For a new partner, the service's defaults. */
  readonly initial: PartnerDefaults & Partial<Partner["settings"]>;
  /** It is registered: only what changed is sent. */
  readonly isKnown?: boolean;
  readonly submit: string;
  readonly isPending: boolean;
  readonly error: unknown;
  /** Gets what the person changed. `saved` takes the settings that hold then. */
  readonly onSubmit: (input: Input, saved: (settings: Partner["settings"]) => void) => void;
  /** The state forbids changes. */
  readonly isReadOnly?: boolean;
}

const lines = (text: string) => text.split(/[\s,]+/).filter((one) => one !== "");
const names = [
  "name",
  "callBackUrl",
  "callBackUrlByCommand",
  "callBackUrlChange",
  "callbackAddresses",
  "callingAddresses",
  "timeZone",
  "retry",
  "cipher",
  "encoding",
  "wireNames",
  "fields",
  "ordering",
  "terminals",
  "settlementTotal",
  "transactionTime",
  "swipeTypes",
  "maxInFlight",
  "maxPerSecond",
] as const;
type Texts = Record<(typeof names)[number], string>;

/** A partner's settings. The API checks them, and its messages are shown at their fields. */
export function SettingsForm({
  initial,
  isKnown = true,
  submit,
  isPending,
  error,
  onSubmit,
  isReadOnly = false,
}: Form) {
  // As the form was filled in. The page reads the settings again meanwhile, and they may be another person's then.
  const [before, setBefore] = useState(() => textsOf(initial));
  const [values, setValues] = useState<Texts>(before);
  const saved = (settings: Partner["settings"]) => {
    setBefore(textsOf(settings));
    setValues(textsOf(settings));
  };
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
      setValues((others) => ({ ...others, [name]: value }));
    },
    error: errorOf(name),
    readOnly: isReadOnly,
  });
  const choice = (name: keyof Texts, data: readonly string[]) => ({
    data: [...data],
    value: values[name] === "" ? null : values[name],
    onChange: (value: string | null) => setValues((others) => ({ ...others, [name]: value ?? others[name] })),
    error: errorOf(name),
    allowDeselect: false,
    readOnly: isReadOnly,
  });
  const number = (name: "maxInFlight" | "maxPerSecond") => ({
    value: values[name],
    onChange: (value: string | number) => setValues((others) => ({ ...others, [name]: String(value) })),
    error: errorOf(name),
    allowDecimal: false,
    readOnly: isReadOnly,
  });
  const isShownAtField = Object.keys(problems).length > 0;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit(inputOf(values, before, isKnown), saved);
      }}
    >
      <Stack gap="md" maw={900}>
        <Part title="The partner">
          <TextInput label="Name" required {...text("name")} />
          <TextInput
            label="Time zone"
            description="IANA name: of its days and of transaction_time"
            {...text("timeZone")}
          />
          <Textarea
            label="Calling addresses"
            description="CIDR blocks from which it calls the API, one per line"
            autosize
            minRows={2}
            {...text("callingAddresses")}
          />
          <Select label="Terminals" {...choice("terminals", ["open", "registered"])} />
        </Part>
        <Part title="Where its IPNs go">
          <TextInput
            label="Callback URL"
            description="Used for commands without their own URL"
            {...text("callBackUrl")}
          />
          <Select label="Who changes the callback URL" {...choice("callBackUrlChange", ["operator", "partner"])} />
          <Textarea
            label="Callback addresses"
            description="CIDR blocks of its endpoint's addresses, one per line"
            required
            autosize
            minRows={2}
            {...text("callbackAddresses")}
          />
          <Textarea
            label="URLs by command"
            description="Such as SETTLEMENT https://books.example/ipn, one per line; the others go to the callback URL"
            autosize
            minRows={2}
            {...text("callBackUrlByCommand")}
          />
        </Part>
        <Part title="How they are sent">
          <Select label="Order of a chain's IPNs" {...choice("ordering", ["chain", "none"])} />
          <TextInput
            label="Retry schedule"
            description="Seconds after each failed attempt, separated by commas"
            {...text("retry")}
          />
          <NumberInput label="POSTs in flight, at most" {...number("maxInFlight")} />
          <NumberInput label="POSTs a second, at most" description="Empty: no limit" {...number("maxPerSecond")} />
        </Part>
        <Part title="What is in them">
          <Select label="Cipher" {...choice("cipher", ciphers)} />
          <Select label="Encoding" {...choice("encoding", encodings)} />
          <Select label="Names on the wire" {...choice("wireNames", wireNames)} />
          <Select label="Fields of its IPNs" {...choice("fields", fieldSets)} />
          <Select label="Settlement's totalAmount" {...choice("settlementTotal", ["sum", "net"])} />
          <Select label="transaction_time" {...choice("transactionTime", ["table", "iso8601"])} />
          <Select label="Swipe types" {...choice("swipeTypes", ["code", "contact"])} />
        </Part>
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

function Part({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <Panel title={title}>
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md" verticalSpacing="sm">
        {children}
      </SimpleGrid>
    </Panel>
  );
}

function textsOf(settings: Form["initial"]): Texts {
  return {
    name: settings.name ?? "",
    callBackUrl: settings.callBackUrl ?? "",
    callBackUrlByCommand: textOfUrls(settings.callBackUrlByCommand),
    callBackUrlChange: settings.callBackUrlChange,
    callbackAddresses: settings.callbackAddresses?.join("\n") ?? "",
    callingAddresses: settings.callingAddresses?.join("\n") ?? "",
    timeZone: settings.timeZone,
    retry: settings.retry.join(", "),
    cipher: settings.cipher,
    encoding: settings.encoding,
    wireNames: settings.wireNames,
    fields: settings.fields,
    ordering: settings.ordering,
    terminals: settings.terminals,
    settlementTotal: settings.settlementTotal,
    transactionTime: settings.transactionTime,
    swipeTypes: settings.swipeTypes,
    maxInFlight: String(settings.maxInFlight),
    maxPerSecond: String(settings.maxPerSecond ?? ""),
  };
}

const required: readonly string[] = ["name", "callbackAddresses", "callingAddresses"];

/**
 * The fields that differ from `before`, so that two people do not undo each other's changes. Of a new partner also the
 * required ones.
 */
function inputOf(values: Texts, before: Texts, isKnown: boolean): Input {
  const sent = names.filter((name) => values[name] !== before[name] || (!isKnown && required.includes(name)));
  return Object.fromEntries(sent.map((name) => [name, fieldOf(name, values[name])])) as Input;
}

/** Text that is not a number is sent as typed, so that the API reports it. */
function fieldOf(name: keyof Texts, text: string): unknown {
  switch (name) {
    case "callBackUrl":
      return text.trim() === "" ? null : text.trim();
    case "callBackUrlByCommand":
      return urlsOfText(text);
    case "callbackAddresses":
    case "callingAddresses":
      return lines(text);
    case "retry":
      return lines(text).map(numberOf);
    case "maxInFlight":
      return numberOf(text);
    case "maxPerSecond":
      return text === "" ? null : numberOf(text);
    default:
      return text;
  }
}

function numberOf(text: string): number | string {
  return /^-?\d+$/.test(text) ? Number(text) : text;
}

type UrlsByCommand = Partner["settings"]["callBackUrlByCommand"];

/** The URLs of commands that have one of their own, one on a line. */
export function UrlsByCommandList({ urls }: { readonly urls: UrlsByCommand }) {
  const named = Object.entries(urls);
  if (named.length === 0) return "none: all IPNs go to the callback URL";
  return named.map(([command, url]) => (
    <div key={command} className="wraps">
      {command} {url}
    </div>
  ));
}

/** As in the form: a command and its URL on each line. */
function textOfUrls(urls: UrlsByCommand): string {
  return Object.entries(urls)
    .map(([command, url]) => `${command} ${url}`)
    .join("\n");
}

/** A line without a URL, and a command on two lines, become no URL: the API reports them at the field. */
function urlsOfText(text: string): Record<string, string> {
  const urls: Record<string, string> = {};
  for (const line of text.split("\n")) {
    const [command = "", ...url] = line.trim().split(/\s+/);
    if (command !== "") urls[command] = [...(urls[command] === undefined ? [] : [urls[command]]), ...url].join(" ");
  }
  return urls;
}
