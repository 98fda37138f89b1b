import { setTimeout as sleep } from "node:timers/promises";
import { type NoResponse, post, postDefaults, type ResponseReceived } from "@paybell/partner/certify";
import { isLoopback } from "../client/connection.ts";
import type { CommandContext } from "../shell/context.ts";
import { Failure } from "../shell/failure.ts";
import {
  bodyOf,
  type Fed,
  Feed,
  type FeedEvents,
  type NotificationSource,
  type Opened,
  type SealedNotification,
} from "./feed.ts";

/** One notification, and what became of it here. */
export interface Event {
  readonly atMs: number;
  readonly notification: SealedNotification;
  /** Undefined where there are no keys. */
  readonly opened: Opened | undefined;
  /** Undefined where nothing is forwarded. */
  readonly forwarded: Forwarded | undefined;
}

/** The wait between requests if the service answers immediately without notifications: it is starting or stopping. */
const askEveryMs = 500;
const pageItems = 100;
/** A notification that was fetched longer ago is fetched again before it is forwarded. */
const freshMs = 120_000;
/** The number of failed ones that can be forwarded again. */
const failedMax = 1_000;

export interface RelayOptions {
  /** Undefined: notifications are only shown. */
  readonly target: URL | undefined;
  /** Ends after so many notifications. */
  readonly countMax: number;
  readonly after: string | undefined;
  readonly from: "now" | "beginning";
}

export interface RelayOutput extends FeedEvents {
  show(event: Event): void;
  /** Called when all later notifications will be received. */
  listening(): void;
}

/** Pulls, opens and forwards, one after the other, in the order in which the service committed them. */
export class Relay {
  readonly #context: CommandContext;
  readonly #source: NotificationSource;
  readonly #output: RelayOutput;
  readonly #options: RelayOptions;
  readonly #feed: Feed;
  readonly #failed = new Map<string, Fed>();
  #retryAll = false;
  /** Aborted by work that cannot wait for the next notification. */
  #turn = new AbortController();
  #done = 0;
  /** The current page: its unhandled notifications are fetched again from here. */
  #unfinishedFrom: { readonly cursor: string | undefined } | undefined;

  constructor(context: CommandContext, source: NotificationSource, output: RelayOutput, options: RelayOptions) {
    this.#context = context;
    this.#source = source;
    this.#output = output;
    this.#options = options;
    this.#feed = new Feed(source, output, options.after);
  }

  /** The cursor to continue from: everything before it was forwarded, or failed. Undefined: from the beginning. */
  get cursor(): string | undefined {
    return this.#unfinishedFrom === undefined ? this.#feed.cursor : this.#unfinishedFrom.cursor;
  }

  /** The number that failed and were not accepted since. */
  get failures(): number {
    return this.#failed.size;
  }

  /** Forwards failed ones again, with a new encryption. */
  retry(): void {
    this.#retryAll = true;
    this.#turn.abort();
  }

  /** Runs until Ctrl-C, or until `countMax` is reached. */
  async run(): Promise<void> {
    const { signal, nowMs } = this.#context;
    const { after, from, countMax } = this.#options;
    if (after === undefined && from === "now") await this.#feed.beginNow(nowMs());
    this.#output.listening();
    while (!signal.aborted) {
      this.#turn = new AbortController();
      const interrupted = AbortSignal.any([signal, this.#turn.signal]);
      if (this.#retryAll) await this.#retry();
      const askedMs = nowMs();
      const fed = await this.#feed.next(Math.min(pageItems, countMax - this.#done), interrupted);
      const fetchedMs = nowMs();
      for (const one of fed) {
        this.#unfinishedFrom = { cursor: one.cursorBefore };
        if (signal.aborted) return;
        const isOld = nowMs() - fetchedMs > freshMs;
        await this.#handle(one, isOld ? await this.#renewed(one) : one.notification);
        this.#done += 1;
      }
      this.#unfinishedFrom = undefined;
      if (this.#done >= countMax) return;
      const waitMs = Math.max(0, askedMs + askEveryMs - nowMs());
      if (fed.length === 0) await sleep(waitMs, undefined, { signal: interrupted }).catch(() => undefined);
    }
  }

  /** Those before it took their time, and a receiver refuses what was signed five minutes ago. */
  async #renewed(fed: Fed): Promise<SealedNotification> {
    const renewed = await this.#feed.again(fed).catch((error: unknown) => this.#report(error));
    return renewed ?? fed.notification;
  }

  async #handle(fed: Fed, notification: SealedNotification): Promise<void> {
    const { target } = this.#options;
    const { id, headers } = notification;
    const opened = await this.#open(notification);
    const forwarded = target && (await forward(this.#context, target, { body: bodyOf(notification), headers }));
    if (forwarded?.accepted === false) this.#failed.set(id, fed);
    else this.#failed.delete(id);
    const [oldest] = this.#failed.keys();
    if (this.#failed.size > failedMax && oldest !== undefined) this.#failed.delete(oldest);
    this.#output.show({ atMs: this.#context.nowMs(), notification, opened, forwarded });
  }

  async #open(notification: SealedNotification): Promise<Opened | undefined> {
    const opened = this.#source.opener?.(notification);
    if (opened?.refused === undefined) return opened;
    // Encrypted with a newer key, which may be in the credentials by now.
    await this.#source.refresh().catch((error: unknown) => this.#report(error));
    return this.#source.opener?.(notification);
  }

  async #retry(): Promise<void> {
    this.#retryAll = false;
    try {
      for (const [id, fed] of [...this.#failed]) {
        if (this.#context.signal.aborted) return;
        const notification = await this.#feed.again(fed);
        if (notification === undefined) this.#failed.delete(id);
        else await this.#handle(fed, notification);
      }
    } catch (error) {
      this.#report(error);
    }
  }

  /** A refusal by the service ends the command only if it concerns the feed. */
  #report(error: unknown): void {
    if (!(error instanceof Failure)) throw error;
    this.#feed.trouble(error);
  }
}

/**
 * Parses the forwarding target: `localhost:3000/ipn`, `3000/ipn`, or a whole URL.
 *
 * @throws Failure for an invalid target, and for http:// to another machine unless that is allowed
 */
export function readTarget(text: string, allowHttp: boolean): URL {
  const place = /^\d+(?:\/|$)/.test(text) ? `localhost:${text}` : text;
  const whole = /^[a-z][a-z0-9+.-]*:\/\//i.test(place) ? place : `http://${place}`;
  const url = URL.canParse(whole) ? new URL(whole) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:") || url.username !== "") {
    throw new Failure(`${JSON.stringify(text)} is not an address to forward to.`, {
      code: "bad_target",
      remedy: "Give it as localhost:3000/ipn or https://localhost:3443/ipn.",
    });
  }
  if (url.protocol === "http:" && !isLoopback(url) && !allowHttp) {
    throw new Failure(
      `${url.host} is another machine, and over http:// anybody on the network could read the headers.`,
      {
        code: "insecure_target",
        remedy: "Use https://, or --allow-http if you trust the network.",
      },
    );
  }
  return url;
}

/** The result of one POST. `detail` says why there is no status, or what was answered with a bad one. */
export interface Forwarded {
  readonly status: number | null;
  readonly accepted: boolean;
  readonly durationMs: number;
  readonly detail: string;
}

const shownCharactersMax = 200;

/**
 * POSTs a sealed body with its headers as the service does: unchanged, with none beside them that a client of the web
 * would add, and redirects are not followed.
 */
async function forward(
  { signal }: Pick<CommandContext, "signal">,
  target: URL,
  { body, headers }: { readonly body: string; readonly headers: Readonly<Record<string, string>> },
): Promise<Forwarded> {
  const came = await post(target, { method: "POST", headers, body }, { ...postDefaults, signal });
  if ("failure" in came) return { status: null, accepted: false, durationMs: came.ms, detail: whyNot(came) };
  const { status, ms: durationMs } = came;
  const accepted = status >= 200 && status <= 299;
  return { status, accepted, durationMs, detail: accepted ? "" : answerOf(came).slice(0, shownCharactersMax) };
}

function answerOf({ status, headers, body }: ResponseReceived): string {
  if (status < 300 || status > 399) return body.toString("utf8").trim();
  return `redirects to ${headers.location ?? "somewhere"}: redirects are not followed`;
}

function whyNot({ failure, detail }: NoResponse): string {
  if (detail.includes("ECONNREFUSED")) return "connection refused: is your server running on that port?";
  if (failure !== "tls") return detail;
  return `${detail}: name your certificate authority in NODE_EXTRA_CA_CERTS`;
}
