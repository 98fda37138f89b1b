import type { EventLoopUtilization } from "node:perf_hooks";
import type { Worker } from "node:worker_threads";
import { systemClock, type Timers } from "../../clock.ts";
import type { LeaseId, PartnerId } from "../../ids.ts";
import type { Log } from "../../log.ts";
import type { Partner } from "../../partners/partner.ts";
import { shardOf } from "../../shard.ts";
import type { Delivery, Hint, QueueKey } from "../store.ts";
import type { FromWorker, PartnerAnswer, ToWorker, WorkerStatus } from "./messages.ts";
import { Outbox } from "./outbox.ts";
import { startThread } from "./start-thread.ts";

export interface SupervisorOptions {
  /** The module that the thread runs, and its data. */
  readonly entry: URL;
  readonly data: unknown;
  readonly name: string;
  readonly log: Log;
  /** Finds a partner and the moment at which it was confirmed. Rejects if it cannot be read now. */
  readonly findPartner: (
    id: PartnerId,
  ) => Promise<{ readonly partner: Partner | undefined; readonly confirmedMs: number }>;
  /** The thread has ended, so its lease is removed. */
  readonly removeLease: (id: LeaseId) => Promise<void>;
  readonly onMessage: (message: FromWorker) => void;
  readonly timers: Timers;
}

/** Rows sent to the thread and not acknowledged. Beyond it, rows are left to be read. */
const creditRows = 4_096;
const creditBytes = 32 * 1_024 * 1_024;
/** Hints sent and not acknowledged. Beyond it the thread has to look at everything, once it has acknowledged some. */
const creditHints = 4_096;
/** The number of acknowledged attempts per message to the thread. */
const notedEvery = 1_024;
/** The thread has forgotten it by then, too. */
const forgottenAfterMs = 60_000;
export const restartMs = 500;
const busyEveryMs = 50;
/** Without a word for so long, a thread is stuck, and is ended. */
export const silentMs = 60_000;
const closeMs = 5_000;

/**
 * Runs one delivery worker in a separate thread, and starts another when it ends. The thread's lease is removed only
 * after its `exit` event: an `error`, or silence, does not prove that it sends nothing more.
 */
export class WorkerSupervisor {
  readonly #options: SupervisorOptions;
  readonly #outbox: Outbox<ToWorker>;
  #thread: Worker | undefined;
  #leaseId: LeaseId | undefined;
  #shards: ReadonlySet<number> = new Set();
  #status: WorkerStatus | undefined;
  /** The end of the lease that the thread reported last, by the monotonic clock; initially its first start. */
  #leaseUntilMs: number | undefined;
  #slots = 0;
  #rowsUnderWay = 0;
  #bytesUnderWay = 0;
  #hintsUnderWay = 0;
  #wasHintKept = false;
  #notes = 0;
  /** Queues that the thread reads for itself now, and since when rows that were kept from it are due. */
  readonly #behind = new Map<string, { readonly key: QueueKey; keptSinceMs: number | undefined }>();
  /** Snapshots that the thread has, and when it last requested each: it requests those in use every few seconds. */
  readonly #sentPartners = new Map<PartnerId, { readonly partner: Partner; readonly atMs: number }>();
  #usage: EventLoopUtilization | undefined;
  #busyShare = 0;
  #busyReadMs = 0;
  #cancelWatchdog: (() => void) | undefined;
  #cancelRestart: (() => void) | undefined;
  #stopped: ((left: number) => void) | undefined;
  #stopping: Promise<number> | undefined;
  #isStopping = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#outbox = new Outbox<ToWorker>(
      () => ({ deliveries: [], begunMs: Infinity, hints: [], partners: [], noted: 0, news: [] }),
      (message) => this.#thread?.postMessage(message),
    );
  }

  get status(): WorkerStatus | undefined {
    return this.#status;
  }

  /** For how long its lease is still held, by its last report; negative: for how long none has been. */
  leaseMs(): number {
    const nowMs = systemClock.monotonicMs();
    return (this.#leaseUntilMs ?? nowMs) - nowMs;
  }

  /** POSTs in flight, by its last report. */
  get slots(): number {
    return this.#slots;
  }

  /** The share of the last moment for which its thread was busy, from 0 to 1. */
  busyShare(): number {
    const nowMs = performance.now();
    if (this.#thread === undefined) return 0;
    if (nowMs - this.#busyReadMs < busyEveryMs) return this.#busyShare;
    const { performance: ofThread } = this.#thread;
    this.#busyShare = ofThread.eventLoopUtilization(this.#usage).utilization;
    this.#usage = ofThread.eventLoopUtilization();
    this.#busyReadMs = nowMs;
    return this.#busyShare;
  }

  owns(partnerId: PartnerId): boolean {
    return this.#shards.has(shardOf(partnerId));
  }

  start(): void {
    const { entry, data, name, log } = this.#options;
    this.#leaseUntilMs ??= systemClock.monotonicMs();
    this.#thread = startThread<FromWorker>({
      entry,
      name,
      logName: "a delivery worker",
      data,
      environment: databaseEnvironment(process.env),
      // Measured with 24: garbage collection took a seventh of the thread's time. Without a bound it uses 40 MB more.
      limits: { maxYoungGenerationSizeMb: 48 },
      log,
      onMessage: (message) => this.#receive(message),
      onExit: (code) => this.#exited(code),
    });
    this.#watch();
  }

  /** Passes on a delivery of a partner that it owns. @param begunMs by the monotonic clock, before it was written */
  offer(delivery: Delivery, begunMs: number): void {
    const { partnerId, queue, bytes, scheduleStartMs: sinceMs } = delivery;
    const behind = this.#behind.get(nameOf({ partnerId, queue }));
    if (behind !== undefined) {
      behind.keptSinceMs = Math.min(behind.keptSinceMs ?? Infinity, sinceMs);
      return;
    }
    if (this.#rowsUnderWay >= creditRows || this.#bytesUnderWay + bytes > creditBytes) {
      this.hint({ partnerId, queue, sinceMs });
      return;
    }
    this.#rowsUnderWay += 1;
    this.#bytesUnderWay += bytes;
    const { message } = this.#outbox;
    message.deliveries.push(delivery);
    message.begunMs = Math.min(message.begunMs, begunMs);
  }

  hint(hint: Hint): void {
    if (this.#hintsUnderWay >= creditHints) {
      this.#wasHintKept = true;
      return;
    }
    this.#hintsUnderWay += 1;
    this.#outbox.message.hints.push(hint);
  }

  notify(news: ToWorker["news"][number]): void {
    const { message } = this.#outbox;
    if (!message.news.includes(news)) message.news.push(news);
  }

  /** The partner has changed: it is sent again. */
  partnerChanged(id: PartnerId): void {
    if (this.#sentPartners.has(id)) void this.#answer(id, true);
  }

  /** @returns the number of attempts that were still running */
  stop(withinMs: number): Promise<number> {
    this.#stopping ??= this.#stop(withinMs);
    return this.#stopping;
  }

  async #stop(withinMs: number): Promise<number> {
    this.#isStopping = true;
    this.#cancelRestart?.();
    this.#cancelWatchdog?.();
    const thread = this.#thread;
    if (thread === undefined) return 0;
    const { promise, resolve } = Promise.withResolvers<number>();
    this.#stopped = resolve;
    this.#outbox.message.stopWithinMs = withinMs;
    this.#outbox.flush();
    const cancel = this.#options.timers.after(withinMs + closeMs, () => void thread.terminate());
    const left = await promise;
    cancel();
    // Attempts that still hang on the wire would keep it alive.
    await thread.terminate();
    return left;
  }

  /** Ends the thread immediately. */
  async end(): Promise<void> {
    await this.#thread?.terminate();
  }

  #receive(message: FromWorker): void {
    this.#watch();
    this.#rowsUnderWay -= message.taken;
    this.#bytesUnderWay -= message.takenBytes;
    this.#heard(message.heard);
    this.#noted(message.attempted.length);
    for (const [id, isKnown] of message.asks) void this.#answer(id, isKnown);
    for (const [key, isBehind] of message.behind) this.#setBehind(key, isBehind);
    for (const { level, fields, message: text } of message.log) this.#options.log[level](fields, text);
    if (message.shards !== undefined) this.#shards = new Set(message.shards);
    if (message.leaseId !== undefined) this.#leaseId = message.leaseId;
    this.#slots = message.slots;
    if (message.status !== undefined) this.#statusChanged(message.status);
    this.#options.onMessage(message);
    if (message.stopped !== undefined) {
      this.#leaseId = undefined;
      this.#stopped?.(message.stopped);
      this.#stopped = undefined;
    }
  }

  #statusChanged(status: WorkerStatus): void {
    this.#status = status;
    if (status.leaseMs > 0) this.#leaseUntilMs = systemClock.monotonicMs() + status.leaseMs;
  }

  #heard(hints: number): void {
    this.#hintsUnderWay -= hints;
    if (hints === 0 || !this.#wasHintKept) return;
    this.#wasHintKept = false;
    this.notify("due");
  }

  #noted(attempts: number): void {
    this.#notes += attempts;
    if (this.#notes < notedEvery) return;
    this.#outbox.message.noted += this.#notes;
    this.#notes = 0;
  }

  async #answer(id: PartnerId, isKnown: boolean): Promise<void> {
    const answer = await this.#options.findPartner(id).then(
      ({ partner, confirmedMs }): PartnerAnswer => {
        const isSame = isKnown && partner !== undefined && this.#sentPartners.get(id)?.partner === partner;
        this.#remember(id, partner);
        return { id, partner: isSame ? "same" : partner, confirmedMs };
      },
      () => undefined,
    );
    // The thread's copy gets old if the partner cannot be read, and its deliveries wait.
    if (answer !== undefined) this.#outbox.message.partners.push(answer);
  }

  #remember(id: PartnerId, partner: Partner | undefined): void {
    const nowMs = systemClock.monotonicMs();
    this.#sentPartners.delete(id);
    if (partner !== undefined) this.#sentPartners.set(id, { partner, atMs: nowMs });
    for (const [one, { atMs }] of this.#sentPartners) {
      if (nowMs - atMs < forgottenAfterMs) return;
      this.#sentPartners.delete(one);
    }
  }

  #setBehind(key: QueueKey, isBehind: boolean): void {
    const name = nameOf(key);
    const behind = this.#behind.get(name);
    if (isBehind) {
      if (behind === undefined) this.#behind.set(name, { key, keptSinceMs: undefined });
      return;
    }
    this.#behind.delete(name);
    if (behind?.keptSinceMs !== undefined) this.hint({ ...key, sinceMs: behind.keptSinceMs });
  }

  #watch(): void {
    this.#cancelWatchdog?.();
    if (this.#isStopping) return;
    this.#cancelWatchdog = this.#options.timers.after(silentMs, () => {
      this.#options.log.error({}, "a delivery worker is stuck; its thread is ended");
      void this.end();
    });
  }

  #exited(code: number): void {
    const { log, removeLease } = this.#options;
    const leaseId = this.#leaseId;
    this.#thread = undefined;
    this.#leaseId = undefined;
    this.#shards = new Set();
    this.#status = undefined;
    this.#leaseUntilMs = Math.min(this.#leaseUntilMs ?? Infinity, systemClock.monotonicMs());
    this.#usage = undefined;
    this.#slots = 0;
    this.#rowsUnderWay = 0;
    this.#bytesUnderWay = 0;
    this.#hintsUnderWay = 0;
    this.#wasHintKept = false;
    this.#notes = 0;
    this.#behind.clear();
    this.#sentPartners.clear();
    if (leaseId !== undefined) {
      removeLease(leaseId).catch((error: unknown) =>
        log.warn({ err: error }, "a dead worker's lease runs out by itself"),
      );
    }
    this.#stopped?.(0);
    if (this.#isStopping) return;
    log.error({ code }, "a delivery worker ended; another is started");
    this.#cancelRestart = this.#options.timers.after(restartMs, () => this.start());
  }
}

function nameOf({ partnerId, queue }: QueueKey): string {
  return `${partnerId} ${queue}`;
}

/** The settings of libpq, which complete DATABASE_URL: PGPASSWORD, PGPASSFILE, PGSSLROOTCERT and others. */
function databaseEnvironment(all: NodeJS.ProcessEnv): Record<string, string> {
  const isOfDatabase = (name: string) => name.startsWith("PG") || name === "HOME";
  return Object.fromEntries(
    Object.entries(all).flatMap(([name, value]) => (value !== undefined && isOfDatabase(name) ? [[name, value]] : [])),
  );
}
