import {
  type Acquirer,
  type AcquirerAnswer,
  type AcquirerHealth,
  type AcquirerMessage,
  type AskOptions,
  NotSent,
  type UnmatchedAnswer,
} from "../acquirer.ts";
import type { SessionPost } from "./post.ts";

/** The holder of the session, according to the database. */
export interface SessionHolder {
  /** Of its lease; null: nobody. */
  readonly leaseId: string | null;
  readonly isUp: boolean;
  readonly detail: string;
}

export interface SessionStore {
  /** Takes the session where nobody has it. @returns who holds it then */
  claim(acquirer: string, leaseId: string): Promise<SessionHolder>;
  /** The holder tells the others how its link is. Nothing happens where it holds the session no more. */
  describe(acquirer: string, leaseId: string, health: AcquirerHealth): Promise<void>;
  release(acquirer: string, leaseId: string): Promise<void>;
}

/** The acquirer's link, which connects on request. */
export interface Connectable extends Acquirer {
  connect(): void;
  health(): AcquirerHealth;
}

export interface OneSessionParts {
  /** Empty: the acquirer of the settings. */
  readonly name: string;
  /** Makes a link that does not connect yet. */
  readonly open: () => Connectable;
  readonly store: SessionStore;
  readonly post: Pick<SessionPost, "ask" | "serve">;
  /** The lease of this process; undefined while it cannot be relied on. */
  readonly lease: () => string | undefined;
  /** The link in whose place this one comes has ended. */
  readonly after?: Promise<unknown>;
  readonly onTrouble: (error: unknown) => void;
}

const lookEveryMs = 500;
/** As long as a message waits for a link that is down. */
const holderWaitMsMax = 3_000;

/**
 * An acquirer whose host allows one session at a time. One instance holds it, as long as its lease is valid; only that
 * one connects. The others pass their messages on to it, so that every instance takes every command. When the holder is
 * gone, another takes the session as soon as its lease is.
 */
export class OneSession implements Acquirer {
  readonly #parts: OneSessionParts;
  readonly #waiting = new Set<() => void>();
  readonly #timer: NodeJS.Timeout;
  #link: Connectable;
  /** The lease under which this instance holds the session. */
  #heldBy: string | undefined;
  #endServing: () => void = () => undefined;
  #holder: SessionHolder | undefined;
  #described = "";
  #looking: Promise<void> | undefined;
  #mayConnect: boolean;
  #isClosed = false;
  #onStray: (answer: UnmatchedAnswer) => void = () => undefined;

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

  refusesToken(token: string): string | undefined {
    return this.#link.refusesToken(token);
  }

  async ask(message: AcquirerMessage, options: AskOptions): Promise<AcquirerAnswer> {
    if (this.#isClosed) throw new NotSent("The link to the acquirer is closed");
    if (this.#heldBy === undefined && this.#other() === undefined) {
      await this.#holderWithin(Math.min(options.timeoutMs, holderWaitMsMax));
    }
    if (this.#heldBy !== undefined) return this.#link.ask(message, options);
    const other = this.#other();
    if (other === undefined) throw new NotSent("No instance has the session with the acquirer's host");
    return this.#parts.post.ask(other, this.#parts.name, message, options);
  }

  health(): AcquirerHealth {
    if (this.#heldBy !== undefined) return this.#link.health();
    const { isUp = false, detail = "" } = this.#holder ?? {};
    if (this.#other() === undefined)
      return { ok: false, detail: "no instance has the one session that the host allows" };
    return { ok: isUp, detail: `another instance has the one session that the host allows: ${detail}` };
  }

  onUnmatchedAnswer(listener: (answer: UnmatchedAnswer) => void): void {
    this.#onStray = listener;
    this.#link.onUnmatchedAnswer?.((answer) => this.#onStray(answer));
  }

  async rereadKey(): Promise<void> {
    await this.#link.rereadKey?.();
  }

  /** Takes the session where it is free, and gives it up where the lease is not held: now and then, never rejects. */
  look(): void {
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
    this.#tell();
    await this.#looking;
    const heldBy = this.#heldBy;
    await this.#letGo();
    await this.#link.close();
    // Last: the next holder must find the host without a session.
    if (heldBy !== undefined) await this.#parts.store.release(this.#parts.name, heldBy).catch(this.#parts.onTrouble);
  }

  async #look(): Promise<void> {
    const lease = this.#parts.lease();
    if (this.#heldBy !== undefined && this.#heldBy !== lease) await this.#letGo();
    if (lease === undefined || !this.#mayConnect || this.#isClosed) return;
    const { name, store } = this.#parts;
    this.#holder = await store.claim(name, lease);
    const isOurs = this.#holder.leaseId === lease && this.#parts.lease() === lease;
    if (isOurs && this.#heldBy === undefined && !this.#isClosed) this.#take(lease);
    if (!isOurs && this.#heldBy !== undefined) await this.#letGo();
    this.#tell();
    if (this.#heldBy === undefined) return;
    const health = this.#link.health();
    // The duration changes with each check, and need not be reported.
    const described = `${health.ok} ${health.detail.replace(/ for \d+ s$/, "")}`;
    if (described === this.#described) return;
    await store.describe(name, this.#heldBy, { ok: health.ok, detail: health.detail.replace(/ for \d+ s$/, "") });
    this.#described = described;
  }

  #take(lease: string): void {
    this.#heldBy = lease;
    this.#described = "";
    this.#link.connect();
    // The asking instance may be dead when a late answer arrives: the answer is reported as unmatched.
    this.#endServing = this.#parts.post.serve(this.#parts.name, lease, (message, timeoutMs) =>
      this.#link.ask(message, { timeoutMs, onLateAnswer: (answer) => this.#onStray(strayOf(message, answer)) }),
    );
  }

  /** Requests in flight get no answer any more. The next link connects once the session is ours again. */
  async #letGo(): Promise<void> {
    if (this.#heldBy === undefined) return;
    this.#heldBy = undefined;
    this.#endServing();
    const link = this.#link;
    if (this.#isClosed) return;
    this.#link = this.#parts.open();
    this.#link.onUnmatchedAnswer?.((answer) => this.#onStray(answer));
    await link.close();
  }

  #other(): string | undefined {
    const leaseId = this.#holder?.leaseId ?? undefined;
    return leaseId === this.#parts.lease() ? undefined : leaseId;
  }

  async #holderWithin(timeoutMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, timeoutMs);
    const look = () => {
      if (this.#isClosed || this.#heldBy !== undefined || this.#other() !== undefined) resolve();
    };
    this.#waiting.add(look);
    await promise;
    clearTimeout(timer);
    this.#waiting.delete(look);
  }

  #tell(): void {
    for (const look of [...this.#waiting]) look();
  }
}

function strayOf(
  { command, tid, mid, traceNo, atMs }: AcquirerMessage,
  { responseCode }: AcquirerAnswer,
): UnmatchedAnswer {
  const mayAnswer = (other: string, otherAtMs: number) => other === command && otherAtMs === atMs;
  return { tid, mid, traceNo, responseCode, mayAnswer };
}
