import { cardCommands } from "@paybell/contract";
import { systemClock, within } from "../../clock.ts";
import {
  type Acquirer,
  type AcquirerAnswer,
  type AcquirerAway,
  type AcquirerHealth,
  type AcquirerMessage,
  type AskOptions,
  NotSent,
  OtherSite,
  type UnmatchedAnswer,
} from "../acquirer.ts";
import { type InstanceRpc, SessionGone } from "./instance-rpc.ts";

/** The holder of the session, according to the database. */
export interface SessionHolder {
  /** The lease of the instance with the session; null: there is none. */
  readonly leaseId: string | null;
  readonly isUp: boolean;
  /** Its host is connected, and has signed off. */
  readonly isSignedOff: boolean;
  readonly detail: string;
}

export interface SessionStore {
  /** Takes the session if it is free. @returns the holder afterwards */
  claim(acquirer: string, leaseId: string): Promise<SessionHolder>;
  /** Stores the state of the holder's link for the others. Does nothing if it no longer holds the session. */
  describe(acquirer: string, leaseId: string, health: AcquirerHealth): Promise<void>;
  release(acquirer: string, leaseId: string): Promise<void>;
}

/** The acquirer's link, which connects on request. */
interface Connectable extends Acquirer {
  connect(): void;
  health(): AcquirerHealth;
}

interface OneSessionParts {
  /** Empty: the acquirer of the settings. */
  readonly name: string;
  /** Makes a link that does not connect yet. */
  readonly open: () => Connectable;
  readonly store: SessionStore;
  readonly rpc: Pick<InstanceRpc, "ask" | "serve" | "instanceLost">;
  /** The lease of this process; undefined while it cannot be relied on. */
  readonly lease: () => string | undefined;
  /** In words, such as `the one session that the host allows`. */
  readonly session: string;
  /** The link in whose place this one comes has ended. */
  readonly after?: Promise<unknown> | undefined;
  readonly onTrouble: (error: unknown) => void;
}

const lookEveryMs = 500;
/** As long as a message waits for a link that is down. */
const holderWaitMsMax = 3_000;
/**
 * The part of a message's time for which it waits while one instance gives the session to another: that one waits for
 * the answers that it owes, and the host allows no second session meanwhile. The rest is for the answer.
 */
const handoverShare = 2 / 3;
const looksAtLeaseEveryMs = 100;
/** A host that restarts is back before, and the session stays where it was. */
const patienceMs = 60_000;
/** It doubles up to this while no instance reaches the host: a new link to one that takes one message at a time waits at first. */
const patienceMsMax = 16 * patienceMs;
/** Meanwhile every other instance looks. */
const restMs = 4 * lookEveryMs;

/**
 * An acquirer whose host allows one session at a time. One instance holds it, as long as its lease is valid; only that
 * one connects. The others pass their messages on to it, so every instance accepts every command. When the holder is
 * gone, another takes the session as soon as its lease is; one that cannot reach the host leaves it to another.
 */
export class OneSession implements Acquirer {
  readonly #parts: OneSessionParts;
  readonly #waiting = new Set<() => void>();
  readonly #timer: NodeJS.Timeout;
  #link: Connectable;
  /** The lease under which this instance holds the session. */
  #heldBy: string | undefined;
  #stopServing: () => void = () => undefined;
  /** The messages of other instances that wait for their answers. */
  readonly #served = new Set<Promise<unknown>>();
  #holder: SessionHolder | undefined;
  /** The host of another holder's link, as far as it is known from what that holder said. */
  #siteOfOther: string | undefined;
  #described = "";
  /** When the holder's own link was last connected, or began. */
  #reachedMs = 0;
  #patienceMs = patienceMs;
  /** The session is left to others until then. */
  #restUntilMs = 0;
  #lastUpMs = systemClock.monotonicMs();
  #looking: Promise<void> | undefined;
  /** The end of the link of the session that was given up last. */
  #released: Promise<void> = Promise.resolve();
  #mayConnect: boolean;
  #isClosed = false;
  #onUnmatched: (answer: UnmatchedAnswer) => void = () => undefined;

  constructor(parts: OneSessionParts) {
    this.#parts = parts;
    this.#link = parts.open();
    this.#mayConnect = parts.after === undefined;
    void parts.after?.then(() => {
      this.#mayConnect = true;
      this.look();
    });
    this.#timer = setInterval(() => this.look(), lookEveryMs);
    this.look();
  }

  get approvals(): ReadonlySet<string> {
    return this.#link.approvals;
  }

  get wantsCards(): boolean {
    return this.#link.wantsCards === true;
  }

  get reversalMarginMs(): number | undefined {
    return this.#link.reversalMarginMs;
  }

  site(): string | undefined {
    return this.#heldBy === undefined ? this.#siteOfOther : this.#link.site?.();
  }

  refusesToken(token: string): string | undefined {
    return this.#link.refusesToken(token);
  }

  async ask(message: AcquirerMessage, options: AskOptions): Promise<AcquirerAnswer> {
    const { monotonicMs } = systemClock;
    const startMs = monotonicMs();
    let holderByMs = startMs + Math.min(options.timeoutMs, holderWaitMsMax);
    for (;;) {
      if (this.#isClosed) throw new NotSent("The link to the acquirer is closed");
      if (!this.#hasHolder()) await this.#wokenWithin(holderByMs - monotonicMs(), () => this.#hasHolder());
      const left = { ...options, timeoutMs: options.timeoutMs - (monotonicMs() - startMs) };
      // As in a link: a process that stood still may find that others have reversed it.
      if (left.timeoutMs <= 0) throw new NotSent("Its time was over before it could leave");
      if (this.#heldBy !== undefined) return this.#link.ask(message, left);
      const other = this.#other();
      if (other === undefined) throw new NotSent("No instance has the session with the acquirer's host");
      try {
        return await this.#parts.rpc.ask(other, this.#parts.name, message, left);
      } catch (error) {
        if (error instanceof OtherSite && other === this.#other()) this.#siteOfOther = error.site;
        // It gives the session up, and may do so for seconds: the next look may find another holder.
        if (!(error instanceof SessionGone)) throw error;
        holderByMs = startMs + options.timeoutMs * handoverShare;
        const isWoken = await this.#wokenWithin(holderByMs - monotonicMs(), () => true);
        if (!isWoken) throw error;
      }
    }
  }

  away(): Promise<AcquirerAway | undefined> | undefined {
    if (this.#heldBy !== undefined) return this.#link.away?.();
    return this.#isOtherUp() ? undefined : this.#whyAway();
  }

  health(): AcquirerHealth {
    if (this.#heldBy !== undefined) return this.#link.health();
    const { isUp = false, detail = "" } = this.#holder ?? {};
    const { session } = this.#parts;
    if (this.#other() === undefined) return { ok: false, detail: `no instance has ${session}` };
    return { ok: isUp, detail: `another instance has ${session}: ${detail}` };
  }

  onUnmatchedAnswer(listener: (answer: UnmatchedAnswer) => void): void {
    this.#onUnmatched = listener;
    this.#link.onUnmatchedAnswer?.((answer) => this.#onUnmatched(answer));
  }

  async reread(): Promise<void> {
    await this.#link.reread?.();
  }

  /** Takes the session if it is free, and gives it up if the lease is lost: called regularly, never rejects. */
  look(): void {
    // The look before this one may still wait for the database.
    if (this.#heldBy !== undefined && this.#heldBy !== this.#parts.lease()) void this.#release();
    this.#looking ??= this.#look()
      .catch((error: unknown) => {
        this.#parts.onTrouble(error);
      })
      .finally(() => {
        this.#looking = undefined;
      });
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#wakeWaiting();
    await this.#looking;
    this.#stopServing();
    await this.#allServed();
    const heldBy = this.#heldBy;
    await this.#release();
    await this.#link.close();
    // Last: the next holder must find the host without a session.
    if (heldBy !== undefined) await this.#parts.store.release(this.#parts.name, heldBy).catch(this.#parts.onTrouble);
  }

  async #look(): Promise<void> {
    const lease = this.#parts.lease();
    if (this.#heldBy !== undefined && this.#heldBy !== lease) await this.#release();
    const nowMs = systemClock.monotonicMs();
    if (lease === undefined || !this.#mayConnect || this.#isClosed || nowMs < this.#restUntilMs) return;
    const { name, store, rpc } = this.#parts;
    const before = this.#other();
    this.#holder = await store.claim(name, lease);
    await this.#released;
    // The next holder may be of an older version, which does not compare hosts.
    if (before !== this.#other()) this.#siteOfOther = undefined;
    if (before !== undefined && before !== this.#holder.leaseId) rpc.instanceLost(before, name);
    const isOurs = this.#holder.leaseId === lease && this.#parts.lease() === lease;
    if (isOurs && this.#heldBy === undefined && !this.#isClosed) this.#take(lease);
    if (!isOurs && this.#heldBy !== undefined) await this.#release();
    this.#wakeWaiting();
    // That one reaches the host, so there is an instance for which to leave it at once.
    const { isUp, isSignedOff: isOtherSignedOff } = this.#holder;
    if (this.#other() !== undefined && (isUp || isOtherSignedOff)) this.#patienceMs = patienceMs;
    if (this.#heldBy === undefined || this.#isClosed) return;
    const health = this.#link.health();
    // The duration changes with each check, and need not be reported.
    const detail = health.detail.replace(/ for \d+ s\b/, "");
    const { ok, isSignedOff = false } = health;
    if (ok || isSignedOff) [this.#reachedMs, this.#patienceMs] = [nowMs, patienceMs];
    if (nowMs - this.#reachedMs >= this.#patienceMs) return this.#leave(this.#heldBy);
    const described = `${ok} ${isSignedOff} ${detail}`;
    if (described === this.#described) return;
    await store.describe(name, this.#heldBy, { ok, isSignedOff, detail });
    this.#described = described;
  }

  #take(lease: string): void {
    this.#heldBy = lease;
    this.#described = "";
    this.#reachedMs = systemClock.monotonicMs();
    this.#link.connect();
    this.#stopServing = this.#parts.rpc.serve(this.#parts.name, lease, async (message, asked) => {
      // This process may have stood still, with the message in its socket: whoever asked has given up since.
      if (this.#parts.lease() !== lease) throw new SessionGone("The lease of the instance with the session has ended");
      // The asking instance may be dead when a late answer arrives: the answer is reported as unmatched.
      const onLateAnswer = (answer: AcquirerAnswer) => {
        if (isMoney(message.command)) this.#onUnmatched(unmatchedAnswerOf(message, answer));
      };
      const answer = this.#link.ask(message, { ...asked, onLateAnswer });
      this.#served.add(answer);
      try {
        return await answer;
      } finally {
        this.#served.delete(answer);
      }
    });
  }

  /** Each ends in the time that its message has. Without the lease, the answers are another instance's. */
  async #allServed(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setInterval(() => {
      if (this.#heldBy === undefined || this.#heldBy !== this.#parts.lease()) resolve();
    }, looksAtLeaseEveryMs);
    await Promise.race([Promise.allSettled(this.#served), promise]);
    clearInterval(timer);
  }

  /** The host cannot be reached from here: another instance may have a way. */
  async #leave(heldBy: string): Promise<void> {
    this.#restUntilMs = systemClock.monotonicMs() + restMs;
    this.#patienceMs = Math.min(2 * this.#patienceMs, patienceMsMax);
    await this.#release();
    await this.#parts.store.release(this.#parts.name, heldBy);
  }

  /** Requests in flight get no answer any more. The next link connects once the session is ours again. */
  #release(): Promise<void> {
    if (this.#heldBy === undefined) return this.#released;
    this.#heldBy = undefined;
    this.#stopServing();
    const link = this.#link;
    if (this.#isClosed) return this.#released;
    this.#link = this.#parts.open();
    this.#link.onUnmatchedAnswer?.((answer) => this.#onUnmatched(answer));
    this.#released = link.close().catch(this.#parts.onTrouble);
    return this.#released;
  }

  #isOtherUp(): boolean {
    return this.#other() !== undefined && this.#holder?.isUp === true;
  }

  /** The holder has just lost its link, or there is none yet: that is waited for, from the last time it was up. */
  async #whyAway(): Promise<AcquirerAway | undefined> {
    const waitMs = this.#lastUpMs + holderWaitMsMax - systemClock.monotonicMs();
    const isSignedOff = () => this.#holder?.isSignedOff === true;
    const isKnown = () => this.#heldBy !== undefined || this.#isOtherUp() || isSignedOff();
    if (waitMs > 0 && !isKnown()) await this.#wokenWithin(waitMs, isKnown);
    if (this.#heldBy !== undefined) return this.#link.away?.();
    if (this.#isOtherUp()) return undefined;
    const code = isSignedOff() ? ("acquirer_signed_off" as const) : ("acquirer_unreachable" as const);
    return { code, detail: this.health().detail };
  }

  #other(): string | undefined {
    const leaseId = this.#holder?.leaseId ?? undefined;
    return leaseId === this.#parts.lease() ? undefined : leaseId;
  }

  #hasHolder(): boolean {
    return this.#heldBy !== undefined || this.#other() !== undefined;
  }

  /** Waits for a look after which `isEnough`. @returns false when the time was over before */
  async #wokenWithin(timeoutMs: number, isEnough: () => boolean): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<true>();
    const look = () => {
      if (this.#isClosed || isEnough()) resolve(true);
    };
    this.#waiting.add(look);
    const isWoken = await within(timeoutMs, promise);
    this.#waiting.delete(look);
    return isWoken ?? false;
  }

  #wakeWaiting(): void {
    if (this.#heldBy !== undefined || this.#isOtherUp()) this.#lastUpMs = systemClock.monotonicMs();
    for (const look of [...this.#waiting]) look();
  }
}

/** A late answer to any other message needs nobody: it was, or is, repeated. */
function isMoney(command: AcquirerMessage["command"]): boolean {
  return command === "SETTLEMENT" || cardCommands.some((one) => one === command);
}

function unmatchedAnswerOf(
  { command, tid, mid, traceNo, atMs }: AcquirerMessage,
  answer: AcquirerAnswer,
): UnmatchedAnswer {
  return {
    ...{ ...answer, tid, traceNo, isSettlement: command === "SETTLEMENT" },
    known: { command, tid, mid, traceNo },
    mayAnswer: (other) => {
      const isSameTerminal = other.tid === tid && other.mid === mid;
      return isSameTerminal && other.command === command && other.traceNo === traceNo && other.atMs === atMs;
    },
  };
}
