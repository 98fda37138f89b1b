import type { Api } from "../api.ts";
import { Failure } from "../failure.ts";
import type { PulledNotification, PulledPage } from "./notification.ts";

const skippedPageItems = 500;

/** One notification, and the cursor of the page that it can be read from again. */
export interface Fed {
  readonly notification: PulledNotification;
  readonly cursorBefore: string | undefined;
}

export interface FeedEvents {
  /** The service cannot be asked for now: told once, until `back`. */
  trouble(failure: Failure): void;
  back(): void;
  /** The cursor means nothing to the service any more, and why; what came since is given all the same. */
  restarted(failure: Failure): void;
  /** So many were passed over so far on the way to the end. */
  skipped(count: number): void;
}

/** The partner's notifications in commit order, from the pull API. */
export class Feed {
  /** Everything up to here was given: `after` of the next page. Undefined: from the beginning. */
  cursor: string | undefined;
  #api: () => Promise<Api>;
  #events: FeedEvents;
  #inTrouble = false;
  /** The service's own time of the last notification that was seen. */
  #lastCreatedAt = "";

  constructor(api: () => Promise<Api>, events: FeedEvents, cursor?: string) {
    this.#api = api;
    this.#events = events;
    this.cursor = cursor;
  }

  /** Passes over all that is there already. */
  async skipToEnd(): Promise<void> {
    let count = 0;
    for (;;) {
      const { items, next } = await this.#page(this.cursor, skippedPageItems);
      this.cursor = next;
      if (items.length === 0) return;
      this.#lastCreatedAt = items.at(-1)?.createdAt ?? this.#lastCreatedAt;
      count += items.length;
      this.#events.skipped(count);
    }
  }

  /**
   * What has come since; empty where nothing has, or where the service cannot be asked for now.
   *
   * @param itemsMax from 1 to 500
   * @throws Failure for what waiting does not mend
   */
  async next(itemsMax: number): Promise<readonly Fed[]> {
    try {
      const cursorBefore = this.cursor;
      const { items, next } = await this.#page(cursorBefore, itemsMax);
      if (this.#inTrouble) this.#events.back();
      this.#inTrouble = false;
      this.cursor = next;
      this.#lastCreatedAt = items.at(-1)?.createdAt ?? this.#lastCreatedAt;
      return items.map((notification) => ({ notification, cursorBefore }));
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      if (isForgotten(error)) return this.#startAgain(error);
      if (!passes(error)) throw error;
      if (!this.#inTrouble) this.#events.trouble(error);
      this.#inTrouble = true;
      return [];
    }
  }

  /** The same notification, sealed anew: what is stale is refused. Undefined when it is no longer kept. */
  async again({ notification, cursorBefore }: Fed): Promise<PulledNotification | undefined> {
    const { items } = await this.#page(cursorBefore, skippedPageItems);
    return items.find(({ id }) => id === notification.id);
  }

  /** After a restore, or a sandbox made anew: what was created since the last one that was seen is not missed. */
  async #startAgain(failure: Failure): Promise<readonly Fed[]> {
    this.#events.restarted(failure);
    const since = this.#lastCreatedAt;
    const found: Fed[] = [];
    this.cursor = undefined;
    for (;;) {
      const cursorBefore = this.cursor;
      const { items, next } = await this.#page(cursorBefore, skippedPageItems);
      this.cursor = next;
      if (items.length === 0) return found;
      const newer = items.filter(({ createdAt }) => createdAt > since);
      found.push(...newer.map((notification) => ({ notification, cursorBefore })));
    }
  }

  async #page(after: string | undefined, limit: number): Promise<PulledPage> {
    const api = await this.#api();
    return api.get<PulledPage>("/v1/notifications", { after, limit });
  }
}

function isForgotten({ code }: Failure): boolean {
  return code === "cursor_from_another_history" || code === "cursor_expired";
}

/** A restart, a proxy without a service behind it, too many calls: time mends these. */
function passes({ code, status = 0 }: Failure): boolean {
  return code === "unreachable" || status === 429 || status >= 500;
}
