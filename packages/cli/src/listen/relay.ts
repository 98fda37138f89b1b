import { setTimeout as sleep } from "node:timers/promises";
import type { CommandContext } from "../shell/command.ts";
import { Failure } from "../shell/failure.ts";
import { type Fed, Feed, type FeedEvents, type NotificationSource } from "./feed.ts";
import { forward } from "./forward.ts";
import { bodyOf, type Opened, type Opener, type SealedNotification } from "./opened.ts";
import type { Event } from "./output.ts";

/** The wait between requests if the service answers immediately without notifications: it is starting or stopping. */
const askEveryMs = 500;
const pageItems = 100;
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

export interface RelayParts {
  readonly service: NotificationSource;
  /** Undefined where there are no keys. */
  readonly opener: () => Opener | undefined;
  /** Reads keys and settings again, because a key may have been rotated. */
  readonly refresh: () => Promise<void>;
  readonly events: FeedEvents;
  readonly show: (event: Event) => void;
  /** Called when all later notifications will be received. */
  readonly listening: () => void;
}

/** Pulls, opens and forwards, one after the other, in the order in which the service committed them. */
export class Relay {
  readonly #context: CommandContext;
  readonly #parts: RelayParts;
  readonly #options: RelayOptions;
  readonly #feed: Feed;
  readonly #failed = new Map<string, Fed>();
  #retryAll = false;
  /** Aborted by work that cannot wait for the next notification. */
  #turn = new AbortController();
  #done = 0;
  /** The current page: its unhandled notifications are fetched again from here. */
  #unfinishedFrom: { readonly cursor: string | undefined } | undefined;

  constructor(context: CommandContext, parts: RelayParts, options: RelayOptions) {
    this.#context = context;
    this.#parts = parts;
    this.#options = options;
    this.#feed = new Feed(parts.service, parts.events, options.after);
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
    this.#parts.listening();
    while (!signal.aborted) {
      this.#turn = new AbortController();
      const interrupted = AbortSignal.any([signal, this.#turn.signal]);
      if (this.#retryAll) await this.#retry();
      const askedMs = nowMs();
      const fed = await this.#feed.next(Math.min(pageItems, countMax - this.#done), interrupted);
      for (const one of fed) {
        this.#unfinishedFrom = { cursor: one.cursorBefore };
        if (signal.aborted) return;
        await this.#handle(one, one.notification);
        this.#done += 1;
      }
      this.#unfinishedFrom = undefined;
      if (this.#done >= countMax) return;
      const waitMs = Math.max(0, askedMs + askEveryMs - nowMs());
      if (fed.length === 0) await sleep(waitMs, undefined, { signal: interrupted }).catch(() => undefined);
    }
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
    this.#parts.show({ atMs: this.#context.nowMs(), notification, opened, forwarded });
  }

  async #open(notification: SealedNotification): Promise<Opened | undefined> {
    const opened = this.#parts.opener()?.(notification);
    if (opened?.refused === undefined) return opened;
    // Encrypted with a newer key, which may be in the credentials by now.
    await this.#parts.refresh().catch((error: unknown) => this.#bear(error));
    return this.#parts.opener()?.(notification);
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
      this.#bear(error);
    }
  }

  /** A refusal by the service ends the command only if it concerns the feed. */
  #bear(error: unknown): void {
    if (!(error instanceof Failure)) throw error;
    this.#feed.trouble(error);
  }
}
