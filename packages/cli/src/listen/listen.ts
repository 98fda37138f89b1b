import { createInterface } from "node:readline";
import type { Self } from "@paybell/partner/client";
import type { Command } from "commander";
import {
  type AccessOptions,
  type ClientSettings,
  readClientSettings,
  type SealingOptions,
  withAccessOptions,
  withSealing,
} from "../client/connection.ts";
import { type CommandContext, command, ends } from "../shell/command.ts";
import { type ExitCode, exitCodes, failureText } from "../shell/failure.ts";
import { wholeNumber } from "../shell/options.ts";
import { type JsonOption, printable, styleFor } from "../shell/output.ts";
import type { FeedEvents } from "./feed.ts";
import { readTarget } from "./forward.ts";
import { type Opener, openerFor, readSelf } from "./opened.ts";
import { type Event, eventJson, eventLines } from "./output.ts";
import { Relay } from "./relay.ts";

interface ListenOptions extends AccessOptions, SealingOptions, JsonOption {
  readonly forward?: string;
  readonly after?: string;
  readonly sinceStart?: boolean;
  readonly printIpn?: boolean;
  readonly count?: number;
}

export function listenCommand(context: CommandContext): Command {
  const made = command("listen", {
    summary: "forward your notifications to a server on this machine, as they happen",
    description:
      "It pulls them from Paybell, so that you need no tunnel and no public address. It POSTs each one still " +
      "encrypted, with the headers of a callback, in the order of their commits. A line for each shows its " +
      "verification and the answer of your server. Nothing is repeated automatically: press r and Enter to forward " +
      "the failed ones again. With --json each line is a JSON object, and the last is `{after}`, the cursor to " +
      "continue from.",
    examples: [
      "paybell listen --forward localhost:3000/ipn",
      "paybell listen --forward localhost:3000/ipn --print-ipn",
      "paybell listen --since-start --count 10 --json",
    ],
    exitCodes: {
      0: "stopped by Ctrl-C, or your server accepted all of --count",
      1: "with --count: it did not accept all",
    },
  })
    .option("--forward <place>", "where your server receives IPNs; without it they are only shown")
    .option("--after <cursor>", "start after this cursor, as an earlier run printed it")
    .option("--since-start", "start with the oldest that is still kept; default: only new ones")
    .option("--print-ipn", "also show each IPN as JSON")
    .option("--count <n>", "end after this number of notifications", wholeNumber(1, 999_999_999));
  return withSealing(withAccessOptions(made)).action(
    ends(context, (options: ListenOptions) => listen(context, options), "finishes"),
  );
}

async function listen(context: CommandContext, options: ListenOptions): Promise<ExitCode> {
  const { stderr, stdout, signal } = context;
  const { json = false, printIpn = false, forward, after, sinceStart = false, count } = options;
  const target = forward === undefined ? undefined : readTarget(forward, options.allowHttp ?? false);
  // A program only reads the events.
  const tell = (text: string) => void (json || stderr.write(`${text}\n`));
  const style = styleFor(stdout, context.env);
  const session = await Session.start(context, options);
  const relay = new Relay(
    context,
    {
      service: { api: () => session.api, renewed: () => session.renewed() },
      opener: () => session.opener,
      refresh: () => session.refresh(),
      events: feedEvents(tell),
      show: (event) => void stdout.write(json ? `${JSON.stringify(eventJson(event, printIpn))}\n` : shown(event)),
      listening: () => tell(banner(session, target)),
    },
    { target, after, from: sinceStart ? "beginning" : "now", countMax: count ?? Number.POSITIVE_INFINITY },
  );

  function shown(event: Event): string {
    const ipn = printIpn ? event.opened?.received?.ipn : undefined;
    const lines = [...eventLines(event, style), ...(ipn === undefined ? [] : [JSON.stringify(ipn, null, 2)])];
    return `${lines.join("\n")}\n`;
  }

  const stopReading = readKeys(context, () => relay.retry());
  try {
    await relay.run();
  } catch (error) {
    // Work in progress was aborted by Ctrl-C.
    if (!signal.aborted) throw error;
  } finally {
    stopReading();
  }
  if (json) stdout.write(`${JSON.stringify({ after: relay.cursor ?? null })}\n`);
  if (count !== undefined && !signal.aborted) return relay.failures === 0 ? exitCodes.ok : exitCodes.negative;
  const from = relay.cursor === undefined ? "--since-start" : `--after ${relay.cursor}`;
  tell(`To go on from here: paybell listen ${from}`);
  return exitCodes.ok;
}

/** The current keys and settings: both may change while listening. */
class Session {
  api;
  opener: Opener | undefined;
  self: Self;
  readonly #context: CommandContext;
  readonly #options: ListenOptions;
  #apiKey: string | undefined;

  static async start(context: CommandContext, options: ListenOptions): Promise<Session> {
    const connection = await readClientSettings(context, options);
    return new Session(context, options, connection, await readSelf(connection.partner()));
  }

  private constructor(context: CommandContext, options: ListenOptions, connection: ClientSettings, self: Self) {
    this.#context = context;
    this.#options = options;
    this.self = self;
    this.api = connection.partner();
    this.#apiKey = connection.credentials.apiKey;
    this.opener = openerFor(connection, self);
  }

  async renewed(): Promise<boolean> {
    const { credentials, partner } = await readClientSettings(this.#context, this.#options);
    if (credentials.apiKey === this.#apiKey) return false;
    this.#apiKey = credentials.apiKey;
    this.api = partner();
    return true;
  }

  async refresh(): Promise<void> {
    const connection = await readClientSettings(this.#context, this.#options);
    this.api = connection.partner();
    this.#apiKey = connection.credentials.apiKey;
    this.self = await readSelf(this.api);
    this.opener = openerFor(connection, this.self);
  }
}

function feedEvents(tell: (text: string) => void): FeedEvents {
  return {
    trouble: (failure) => tell(`${failureText(failure)}\n  Trying again until it can be.`),
    back: () => tell("Connected again: nothing was missed."),
    restarted: ({ message }) => tell(`${message} Continuing with what came since the last one.`),
  };
}

function banner({ api, self, opener }: Session, target: URL | undefined): string {
  const { name, cipher, encoding, signing } = self.settings;
  const sealed = cipher === "jwe" ? "jwe" : `${cipher}, ${encoding}`;
  return [
    `Listening to ${api.baseUrl} as ${printable(name)} (${sealed}, signing ${signing?.mode})`,
    target === undefined ? "Nothing is forwarded: name your server with --forward" : `Forwarding to ${target.href}`,
    ...(opener === undefined ? ["There are no keys here: notifications are not opened"] : []),
    "Press Ctrl-C to stop. Press r and Enter to forward the failed ones again.",
    "",
  ].join("\n");
}

/** A person at a terminal may press keys; a pipe may not. */
function readKeys({ stdin }: CommandContext, retry: () => void): () => void {
  if (stdin.isTTY !== true) return () => undefined;
  const lines = createInterface({ input: stdin });
  lines.on("line", (line) => line.trim().toLowerCase() === "r" && retry());
  return () => lines.close();
}
