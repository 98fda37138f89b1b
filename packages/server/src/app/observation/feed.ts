import { systemClock } from "../../clock.ts";
import { messageOf } from "../../errors.ts";
import { EventFeed } from "../../feed/feed.ts";
import { FeedStream } from "../../feed/stream.ts";
import { feedTarget } from "../../feed/targets.ts";
import type { AuditStore } from "../../operators/audit.ts";
import { postgresFeed, postgresFeedPositions } from "../../store/events.ts";
import { PostgresIntakeLocks } from "../../store/intake-locks.ts";
import type { Infrastructure } from "../infrastructure.ts";

const alertEveryMs = 3_600_000;

/** The operator's events, for those who ask, and for the file or collector of the settings. */
export function wireFeed(
  { database, config, alerts, metrics, log, closing }: Infrastructure,
  audit: Pick<AuditStore, "following">,
): { readonly feed: EventFeed; start(): void; stop(): Promise<void> } {
  const open = () => new EventFeed(database.homes.all.map((home) => postgresFeed(home)));
  const feed = open();
  const { feedUrl } = config;
  if (feedUrl === null) return { feed, start: () => undefined, stop: async () => feed.stop() };
  const lock = new PostgresIntakeLocks(() => database.connectDirectly());
  const report = async (target: string, failure: unknown) => {
    log.warn({ err: failure, target }, "the feed cannot be written; it is tried again");
    const detail = { target, detail: messageOf(failure) };
    await alerts.recordOnce({ kind: "feed_failed", partnerId: null, subjectId: null, detail }, alertEveryMs);
  };
  const stream = new FeedStream({
    feed: open(),
    audit,
    positions: postgresFeedPositions(database.pool),
    lock,
    open: () => feedTarget(feedUrl),
    nowMs: () => systemClock.monotonicMs(),
    onFailed: (target, failure) => {
      report(target, failure).catch((problem: unknown) =>
        log.warn({ err: problem }, "the alert could not be recorded"),
      );
    },
    onRestarted: () => log.warn({}, "the feed begins again: its position is of another database, or too old"),
  });
  metrics.onRead(async () => {
    const { entries, sinceMs } = stream.unwritten ?? { entries: 0, sinceMs: systemClock.nowMs() };
    metrics.feedWaiting.set(entries);
    metrics.feedLagSeconds.set(Math.max(0, systemClock.nowMs() - sinceMs) / 1_000);
  });
  const stop = async () => {
    feed.stop();
    await stream.stop();
    await lock.close();
  };
  closing.push(stop);
  return { feed, start: () => stream.start(), stop };
}
