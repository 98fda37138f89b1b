import { NumberInput, Select, SimpleGrid, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { ciphers, encodings, fieldSets, wireNames } from "@paybell/contract";
import type { ReactNode } from "react";
import { useState } from "react";
import type { Partner, PartnerDefaults, PartnerRegistration } from "../api/operations.ts";
import { Form, numberOf, useForm } from "../display/form.tsx";
import { Panel } from "../display/page.tsx";

type Input = PartnerRegistration;
type Settings = Partner["settings"];
type Shown = PartnerDefaults & Partial<Settings>;

/** How a setting is typed: its text, and what a text means. The API refuses what is neither. */
interface Typed {
  toText(value: unknown): string;
  toValue(text: string): unknown;
}

const words: Typed = { toText: (value) => String(value ?? ""), toValue: (text) => text };
const optionalUrl: Typed = { ...words, toValue: (text) => text.trim() || null };
const count: Typed = { ...words, toValue: numberOf };
const optionalCount: Typed = { ...words, toValue: (text) => (text === "" ? null : numberOf(text)) };
const list = (separator: string, toValue: (text: string) => unknown = (text) => text): Typed => ({
  toText: (value) => ((value as readonly unknown[] | undefined) ?? []).join(separator),
  toValue: (text) =>
    text
      .split(/[\s,]+/)
      .filter((one) => one !== "")
      .map(toValue),
});

const fields = {
  name: words,
  callBackUrl: optionalUrl,
  callBackUrlByCommand: { toText: (urls) => textOfUrls(urls as UrlsByCommand), toValue: urlsOfText } as Typed,
  callBackUrlChange: words,
  callbackAddresses: list("\n"),
  callingAddresses: list("\n"),
  contactMails: list("\n"),
  contactUrl: optionalUrl,
  timeZone: words,
  retry: list(", ", numberOf),
  cipher: words,
  encoding: words,
  wireNames: words,
  fields: words,
  ordering: words,
  terminals: words,
  settlementTotal: words,
  transactionTime: words,
  swipeTypes: words,
  maxInFlight: count,
  maxPerSecond: optionalCount,
} as const;
type Name = keyof typeof fields;
type Texts = Record<Name, string>;

const names = Object.keys(fields) as readonly Name[];
const required: readonly string[] = ["name", "callbackAddresses", "callingAddresses"];

export function textsOf(settings: Shown): Texts {
  return Object.fromEntries(names.map((name) => [name, fields[name].toText(settings[name])])) as Texts;
}

/**
 * The fields that differ from `before`, so that two people do not undo each other's changes. Of a new partner also the
 * required ones.
 */
export function inputOf(values: Texts, before: Texts, isKnown: boolean): Input {
  const sent = names.filter((name) => values[name] !== before[name] || (!isKnown && required.includes(name)));
  return Object.fromEntries(sent.map((name) => [name, fields[name].toValue(values[name])])) as unknown as Input;
}

/** A partner's settings. The API checks them, and its messages are shown at their fields. */
export function SettingsForm({
  initial,
  isKnown = true,
  submit,
  call,
}: {
  /** For a new partner, the service's defaults. */
  readonly initial: Shown;
  /** It is registered: only what changed is sent. */
  readonly isKnown?: boolean;
  /** The word on the button. Undefined: the state forbids changes. */
  readonly submit: string | undefined;
  /** Sends what the person changed. @returns the settings that hold then */
  call(input: Input): Promise<Settings | undefined>;
}) {
  // As the form was filled in. The page reads the settings again meanwhile, and they may be another person's then.
  const [before, setBefore] = useState(() => textsOf(initial));
  const form = useForm(
    before,
    async (values) => {
      const input = inputOf(values, before, isKnown);
      return Object.keys(input).length === 0 ? "nothing" : await call(input);
    },
    (settings, { set }) => {
      if (settings === "nothing" || settings === undefined) return;
      setBefore(textsOf(settings));
      set(textsOf(settings));
    },
  );
  const readOnly = submit === undefined;
  const text = (name: Name) => ({ ...form.text(name), readOnly });
  const lines = (name: Name) => ({ ...text(name), autosize: true, minRows: 2 });
  const number = (name: Name) => ({ ...form.number(name), readOnly });
  const choice = (name: Name, data: readonly string[]) => ({ ...form.choice(name), data: [...data], readOnly });
  const { data: answer } = form.sending;
  return (
    <Form
      of={form}
      submit={submit}
      done={
        answer === "nothing"
          ? "There is nothing to save: every field is as it was."
          : answer !== undefined && "Changed. It holds for what is queued, too."
      }
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
            {...lines("callingAddresses")}
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
            {...lines("callbackAddresses")}
          />
          <Textarea
            label="URLs by command"
            description="Such as SETTLEMENT https://books.example/ipn, one per line; the others go to the callback URL"
            {...lines("callBackUrlByCommand")}
          />
        </Part>
        <Part
          title="Messages when deliveries fail"
          about="The partner's people get one when deliveries have failed for 5 minutes, before any is parked, and when everything is received again."
        >
          <Textarea
            label="By mail to"
            description="Such as ops@shop.example: one per line, at most 10"
            {...lines("contactMails")}
          />
          <TextInput
            label="By webhook to"
            description="An https:// URL, better not on the callback's server: that may be down"
            {...text("contactUrl")}
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
      </Stack>
    </Form>
  );
}

function Part({
  title,
  about,
  children,
}: {
  readonly title: string;
  readonly about?: string;
  readonly children: ReactNode;
}) {
  return (
    <Panel title={title}>
      {about !== undefined && (
        <Text c="dimmed" mb="sm">
          {about}
        </Text>
      )}
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md" verticalSpacing="sm">
        {children}
      </SimpleGrid>
    </Panel>
  );
}

type UrlsByCommand = Settings["callBackUrlByCommand"];

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
