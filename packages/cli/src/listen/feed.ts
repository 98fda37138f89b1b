import { IpnRefused, Misused, type ReceivedIpn, type ReceiverOptions, receiver } from "@paybell/partner";
import type { NotificationPage, Self } from "@paybell/partner/client";
import type { Api, How, Query } from "../client/api.ts";
import { type ClientSettings, receiverOptionsOf } from "../client/connection.ts";
import { definedOf } from "../client/credentials.ts";
import { Failure, passes } from "../shell/failure.ts";

/** One notification as it is pulled, sealed. */
export type SealedNotification = NotificationPage["items"][number];

/** The body that a callback would carry: what webhook-signature covers. */
export function bodyOf({ data }: Pick<SealedNotification, "data">): string {
  return JSON.stringify({ data });
}

/** The result of opening a notification with our own keys: the IPN, or why there is none. */
export type Opened =
  | { readonly received: ReceivedIpn; readonly refused: undefined }
  | { readonly received: undefined; readonly refused: { readonly reason: string; readonly hint: string } };

export type Opener = (notification: SealedNotification) => Opened;

/**
 * Returns the function that opens notifications, with the partner's settings in the service unless options override
 * them. Undefined without keys: then notifications are forwarded unopened.
 *
 * @throws Failure for an invalid key
 */
export function openerFor({ credentials }: ClientSettings, self: Self): Opener | undefined {
  const { encryptionKey, signingKey, webhookSecret } = credentials;
  if (encryptionKey === undefined && signingKey === undefined && webhookSecret === undefined) return undefined;
  const { cipher, encoding, signing, fields } = self.settings;
  const options = { ...definedOf({ cipher, encoding, signing, fields }), ...receiverOptionsOf(credentials) };
  const opener = openReceiver(options);
  return (notification) => {
    try {
      return { received: opener.open(bodyOf(notification), notification.headers), refused: undefined };
    } catch (error) {
      if (!(error instanceof IpnRefused)) throw error;
      return { received: undefined, refused: { reason: error.reason, hint: error.hint } };
    }
  };
}

/** @throws Failure naming the option and the mistake */
export function openReceiver(options: ReceiverOptions) {
  try {
    return receiver(options);
  } catch (error) {
    if (!(error instanceof Misused)) throw error;
    throw new Failure(error.message, { code: "bad_configuration" });
  }
}

export function readSelf(api: Api): Promise<Self> {
  return api.get<Self>("/v1/self");
}

const pageItemsMax = 500;
/** Shorter than proxies between us and the service keep a silent connection. */
const waitSeconds = 20;
/** No answer within this time: the connection is dead without an error. */
const answerTimeoutMs = 30_000;

/** One notification, and the cursor of the page that it can be read from again. */
export interface Fed {
  readonly notification: SealedNotification;
  readonly cursorBefore: string | undefined;
}

/** Where notifications come from, and what opens them. Both may change while listening. */
export interface NotificationSource {
  readonly api: Api;
  /** Undefined where there are no keys. */
  readonly opener: Opener | undefined;
  /** Reads the credentials again. Resolves to whether the API key is another one now. */
  renewed(): Promise<boolean>;
  /** Reads keys and settings again, because a key may have been rotated. */
  refresh(): Promise<void>;
}

export interface FeedEvents {
  /** The service cannot be reached now: called once, until `back`. */
  trouble(failure: Failure): void;
  back(): void;
  /** The service no longer accepts the cursor, with the reason; later notifications are fetched anyway. */
  restarted(failure: Failure): void;
}

/** The partner's notifications in commit order, from the pull API. */
export class Feed {
  /** Everything up to here was fetched: `after` of the next page. Undefined: from the beginning. */
  cursor: string | undefined;
  readonly #source: NotificationSource;
  readonly #events: FeedEvents;
  #inTrouble = false;
  /** Whether the service has answered to a cursor of ours. */
  #isKnown = false;
  /** The service's own time of the last notification that was seen; at first, ours of the beginning. */
  #lastCreatedAt = "";

  constructor(source: NotificationSource, events: FeedEvents, cursor?: string) {
    this.#source = source;
    this.#events = events;
    this.cursor = cursor;
  }

  /** Skips existing notifications, without reading them. */
  async beginNow(nowMs: number): Promise<void> {
    const { next } = await this.#page({ after: "now" });
    this.cursor = next;
    this.#isKnown = true;
    this.#lastCreatedAt = new Date(nowMs).toISOString();
  }

  /**
   * Returns the next notifications as soon as there are some; empty if none arrive for a while, if the service cannot
   * be reached now, or if `signal` aborts.
   *
   * @param itemsMax from 1 to 500
   * @throws Failure if waiting does not help
   */
  async next(itemsMax: number, signal: AbortSignal): Promise<readonly Fed[]> {
    try {
      const fed = await this.#following(itemsMax, signal);
      if (this.#inTrouble) this.#events.back();
      this.#inTrouble = false;
      this.#lastCreatedAt = fed.at(-1)?.notification.createdAt ?? this.#lastCreatedAt;
      return fed;
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      if (signal.aborted) return [];
      // A new sandbox has other keys, which are in its file.
      if (error.status === 401 && (await this.#source.renewed())) return [];
      if (!passes(error)) throw error;
      this.trouble(error);
      return [];
    }
  }

  /** Reports a temporary failure, once until it has passed. */
  trouble(failure: Failure): void {
    if (!this.#inTrouble) this.#events.trouble(failure);
    this.#inTrouble = true;
  }

  async #following(limit: number, signal: AbortSignal): Promise<readonly Fed[]> {
    const cursorBefore = this.cursor;
    try {
      const how = { signal, timeoutMs: answerTimeoutMs };
      const { items, next } = await this.#page({ after: cursorBefore, limit, wait: waitSeconds }, how);
      this.cursor = next;
      this.#isKnown = true;
      return items.map((notification) => ({ notification, cursorBefore }));
    } catch (error) {
      // A cursor from the command line that never worked must be corrected by the user.
      if (!(error instanceof Failure) || !isForgotten(error) || !this.#isKnown) throw error;
      return await this.#fromTheStart(error);
    }
  }

  /** The same notification, sealed again, because a stale one is refused. Undefined if it is no longer stored. */
  async again({ notification }: Fed): Promise<SealedNotification | undefined> {
    const path = `/v1/notifications/${encodeURIComponent(notification.id)}/sealed`;
    try {
      const { data, headers } = await this.#source.api.get<Pick<SealedNotification, "data" | "headers">>(path);
      return { ...notification, data, headers };
    } catch (error) {
      if (error instanceof Failure && error.status === 404) return undefined;
      throw error;
    }
  }

  /** After a restore, or with a new sandbox: notifications since the last seen one are not missed. */
  async #fromTheStart(failure: Failure): Promise<readonly Fed[]> {
    const found: Fed[] = [];
    let cursor: string | undefined;
    for (;;) {
      const cursorBefore = cursor;
      const { items, next } = await this.#page({ after: cursorBefore, limit: pageItemsMax });
      cursor = next;
      if (items.length === 0) break;
      const newer = items.filter(({ createdAt }) => createdAt > this.#lastCreatedAt);
      found.push(...newer.map((notification) => ({ notification, cursorBefore })));
    }
    this.cursor = cursor;
    this.#events.restarted(failure);
    return found;
  }

  async #page(query: Query, how: How = {}): Promise<NotificationPage> {
    return this.#source.api.get<NotificationPage>("/v1/notifications", query, how);
  }
}

function isForgotten({ code }: Failure): boolean {
  return code === "cursor_from_another_history" || code === "cursor_expired";
}
