import { createInterface } from "node:readline";
import type { ReceivedIpn } from "@paybell/partner";
import type { Self } from "@paybell/partner/client";
import {
  type AccessOptions,
  readClientSettings,
  type SealingOptions,
  withAccessOptions,
  withSealing,
} from "../client/connection.ts";
import { type AnyCommand, acts, command } from "../shell/command.ts";
import type { CommandContext } from "../shell/context.ts";
import { exitCodes, failureText } from "../shell/failure.ts";
import { wholeNumber } from "../shell/options.ts";
import { printable, type Style, styleFor } from "../shell/output.ts";
import { type NotificationSource, type Opened, openerFor, readSelf, type SealedNotification } from "./feed.ts";
import { type Event, type Forwarded, Relay, readTarget } from "./relay.ts";

type ListenOptions = AccessOptions & SealingOptions;

export function listenCommand(context: CommandContext): AnyCommand {
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
  return acts(
    context,
    withSealing(withAccessOptions(made)),
    async (options) => {
      const { stderr, stdout, signal } = context;
      const { json = false, printIpn = false, forward, after, sinceStart = false, count } = options;
      const target = forward === undefined ? undefined : readTarget(forward, options.allowHttp ?? false);
      // A program only reads the events.
      const tell = (text: string) => void (json || stderr.write(`${text}\n`));
      const style = styleFor(stdout, context.env);
      const session = await startSession(context, options);
      const relay = new Relay(
        context,
        session,
        {
          trouble: (failure) => tell(`${failureText(failure)}\n  Trying again until it can be.`),
          back: () => tell("Connected again: nothing was missed."),
          restarted: ({ message }) => tell(`${message} Continuing with what came since the last one.`),
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
        // Work in progress was aborted by Ctrl-C. After a failure, what is not forwarded yet is found by the cursor.
        if (!signal.aborted) {
          if (relay.cursor !== after) tellCursor();
          throw error;
        }
      } finally {
        stopReading();
      }
      if (json || count === undefined || signal.aborted) tellCursor();
      return count === undefined || signal.aborted || relay.failures === 0 ? exitCodes.ok : exitCodes.negative;

      function tellCursor(): void {
        if (json) stdout.write(`${JSON.stringify({ after: relay.cursor ?? null })}\n`);
        const from = relay.cursor === undefined ? "--since-start" : `--after ${relay.cursor}`;
        tell(`To go on from here: paybell listen ${from}`);
      }
    },
    "finishes",
  );
}

interface Session extends NotificationSource {
  readonly self: Self;
}

/** The current keys and settings. */
async function startSession(context: CommandContext, options: ListenOptions): Promise<Session> {
  const read = async () => {
    const connection = await readClientSettings(context, options);
    const api = connection.partner();
    const self = await readSelf(api);
    return { api, apiKey: connection.credentials.apiKey, self, opener: openerFor(connection, self) };
  };
  let now = await read();
  return {
    get api() {
      return now.api;
    },
    get opener() {
      return now.opener;
    },
    get self() {
      return now.self;
    },
    async renewed() {
      const { credentials, partner } = await readClientSettings(context, options);
      if (credentials.apiKey === now.apiKey) return false;
      now = { ...now, api: partner(), apiKey: credentials.apiKey };
      return true;
    },
    async refresh() {
      now = await read();
    },
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

/** A line, and a second one where something is wrong. */
function eventLines({ atMs, notification, opened, forwarded }: Event, style: Style): string[] {
  const time = style.faint(new Date(atMs).toTimeString().slice(0, 8));
  const words = [time, ...contentText(notification, opened, style), ...forwardText(forwarded, style)];
  const detail = forwarded?.accepted === false && forwarded.status !== null ? forwarded.detail : "";
  return [
    words.join("  "),
    ...(opened?.refused === undefined ? [] : [`          ${printable(opened.refused.hint)}`]),
    ...(detail === "" ? [] : [`          it answered: ${printable(detail)}`]),
  ];
}

function contentText({ id, kind }: SealedNotification, opened: Opened | undefined, style: Style): string[] {
  if (opened === undefined) return [kind, `notification ${id}`, style.faint("not opened")];
  if (opened.refused !== undefined) {
    return [kind, `notification ${id}`, style.bad(`NOT AUTHENTIC: ${opened.refused.reason}`)];
  }
  return [...ipnText(opened.received, style), style.good("verified")];
}

/** Command, amount, status and reference come first. */
function ipnText({ kind, ipn, command, headers }: ReceivedIpn, style: Style): string[] {
  const name = style.strong(command ?? headers.command ?? ipn.transaction_type);
  if (kind === "settlement") {
    const batch = `batch ${ipn.batchNo}  ${ipn.quantity} for ${ipn.totalAmount}`;
    return [name, printable(batch), outcome(ipn.status, "", style), printable(`terminal ${ipn.tid}`)];
  }
  const reference = ipn.refId === "" ? [] : [printable(`refId ${ipn.refId}`)];
  return [
    name,
    printable(`${ipn.amount} ${ipn.currency}`),
    outcome(ipn.status, ` ${ipn.isoResponseCode}`, style),
    ...reference,
  ];
}

function outcome(status: string, code: string, style: Style): string {
  const text = printable(`${status}${code}`);
  return status === "SUCCESS" ? text : style.bad(text);
}

function forwardText(forwarded: Forwarded | undefined, style: Style): string[] {
  if (forwarded === undefined) return [];
  const { status, accepted, durationMs, detail } = forwarded;
  const took = `${Math.round(durationMs)} ms`;
  if (status === null) return [style.bad(`→ ${printable(detail)}`), took];
  return [accepted ? style.good(`→ ${status}`) : style.bad(`→ ${status}`), took];
}

/** The same for a program: one line of JSON. */
function eventJson({ atMs, notification, opened, forwarded }: Event, withIpn: boolean): object {
  const { id, createdAt, kind } = notification;
  const { received, refused } = opened ?? {};
  return {
    at: new Date(atMs).toISOString(),
    notificationId: id,
    createdAt,
    kind,
    command: received?.headers.command ?? null,
    verified: opened === undefined ? null : received !== undefined,
    ...(refused !== undefined && { refused }),
    ...(received !== undefined && summaryOf(received)),
    forwarded: forwarded ?? null,
    ...(withIpn && received !== undefined && { ipn: received.ipn }),
  };
}

function summaryOf({ kind, ipn }: ReceivedIpn): object {
  const { id: transactionId, reqId, status } = ipn;
  if (kind === "settlement") {
    return { transactionId, reqId, status, batchNo: ipn.batchNo, totalAmount: ipn.totalAmount };
  }
  const { amount, currency, isoResponseCode, refId } = ipn;
  return { transactionId, reqId, status, isoResponseCode, amount, currency, refId };
}
