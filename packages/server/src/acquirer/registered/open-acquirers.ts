import { within } from "../../clock.ts";
import { messageOf } from "../../errors.ts";
import { type Acquirer, type Acquirers, askedBy, NotSent, noAcquirer, type UnmatchedAnswer } from "../acquirer.ts";
import type { AcquirerStore, StoredAcquirer } from "./registry.ts";

/** The place that a link takes. */
export interface Replaced {
  /** Resolves when the link before has closed. */
  readonly ended: Promise<unknown>;
  /** For the link's own end: whether another takes its place; undefined: the process stops. */
  staysInUse(): boolean | undefined;
}

interface OpenAcquirersParts {
  /** The acquirer of the settings. It does not change while the service runs. */
  readonly ofSettings: Acquirer | null;
  readonly store: Pick<AcquirerStore, "versions" | "find">;
  /** Opens the link of a registration, which may be wrong by now. */
  readonly open: (stored: StoredAcquirer, replaced: Replaced) => Acquirer;
  /** For how long answers in flight are waited for before a link is closed. */
  readonly drainMs: number;
  readonly onTrouble: (error: unknown) => void;
}

interface Opened extends ReturnType<typeof counted> {
  readonly version: string;
}

const refreshEveryMs = 5_000;
const unreportedMax = 10_000;

/**
 * The acquirers that can be asked now: the one of the settings, and a link to each registered one. A registration that
 * changed is applied while the service runs: new messages go over a new link, and the old one is
 * closed once its answers have come.
 */
export class OpenAcquirers implements Acquirers {
  readonly #parts: OpenAcquirersParts;
  readonly #opened = new Map<string, Opened>();
  readonly #closing = new Set<Promise<void>>();
  #names: readonly string[] = [];
  #refreshing: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;
  /** Answers that came before there was a listener. */
  readonly #unreported: [name: string, answer: UnmatchedAnswer][] = [];
  #onUnmatched: (name: string, answer: UnmatchedAnswer) => void = (...given) => {
    if (this.#unreported.length < unreportedMax) this.#unreported.push(given);
  };

  constructor(parts: OpenAcquirersParts) {
    this.#parts = parts;
    // Its link may connect before the service has started, and the host then send what it still owes.
    parts.ofSettings?.onUnmatchedAnswer?.((answer) => this.#onUnmatched("", answer));
    this.#updateNames();
  }

  /** Resolves once every registered one is open. Rejects when they cannot be read. */
  async start(): Promise<void> {
    await this.#refresh();
    this.#timer = setInterval(() => void this.refresh(), refreshEveryMs);
  }

  /** Looks for changes, once started: on notification, and every five seconds. Never rejects. */
  refresh(): Promise<void> {
    if (this.#timer === undefined) return Promise.resolve();
    this.#refreshing = this.#refreshing.then(() => this.#refresh()).catch(this.#parts.onTrouble);
    return this.#refreshing;
  }

  of(name: string): Acquirer {
    return this.#find(name) ?? noAcquirer;
  }

  has(name: string): boolean {
    return this.#find(name) !== undefined;
  }

  names(): readonly string[] {
    return this.#names;
  }

  /** From now on reports answers without a waiting caller, and those that have come so far. */
  onUnmatchedAnswer(listener: (name: string, answer: UnmatchedAnswer) => void): void {
    this.#onUnmatched = listener;
    for (const given of this.#unreported.splice(0)) listener(...given);
  }

  /** Callers that still wait for an answer learn that none will arrive. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#timer);
    const opened = [...this.#opened.values()].map(({ acquirer }) => acquirer.close());
    await Promise.all([this.#parts.ofSettings?.close(), ...opened, ...this.#closing, this.#refreshing]);
  }

  #find(name: string): Acquirer | undefined {
    return name === "" ? (this.#parts.ofSettings ?? undefined) : this.#opened.get(name)?.acquirer;
  }

  async #refresh(): Promise<void> {
    if (this.#isStopped) return;
    const { store } = this.#parts;
    const versions = await store.versions();
    for (const [name, opened] of this.#opened) {
      if (versions.has(name)) continue;
      this.#opened.delete(name);
      void this.#drain(opened);
    }
    for (const [name, version] of versions) {
      const current = this.#opened.get(name);
      if (current?.version === version) continue;
      const stored = await store.find(name);
      if (stored !== undefined && !this.#isStopped) this.#replace(current, stored);
    }
    this.#updateNames();
    await Promise.all(this.#names.map((name) => this.#find(name)?.reread?.()));
  }

  #replace(current: Opened | undefined, stored: StoredAcquirer): void {
    const ended = current === undefined ? Promise.resolve() : this.#drain(current);
    const link = this.#openOrUnavailable(stored, ended);
    link.onUnmatchedAnswer?.((answer) => this.#onUnmatched(stored.name, answer));
    this.#opened.set(stored.name, { version: stored.version, ...counted(link) });
  }

  /** One that cannot be opened is listed, with the reason. */
  #openOrUnavailable(stored: StoredAcquirer, ended: Promise<void>): Acquirer {
    try {
      const staysInUse = () => (this.#isStopped ? undefined : this.has(stored.name));
      return this.#parts.open(stored, { ended, staysInUse });
    } catch (error) {
      this.#parts.onTrouble(error);
      const why = messageOf(error);
      return {
        ...noAcquirer,
        ask: () => Promise.reject(new NotSent(`The acquirer ${stored.name} cannot be opened: ${why}`)),
        health: () => ({ ok: false, detail: `cannot be opened: ${why}` }),
      };
    }
  }

  #drain(opened: Opened): Promise<void> {
    const closed = opened.closeOnceAnswered(this.#parts.drainMs);
    this.#closing.add(closed);
    return closed.finally(() => this.#closing.delete(closed));
  }

  #updateNames(): void {
    this.#names = [...(this.#parts.ofSettings === null ? [] : [""]), ...[...this.#opened.keys()].sort()];
  }
}

/** Counts the unanswered requests of a link. */
function counted(link: Acquirer) {
  let inFlight = 0;
  let onNone: () => void = () => undefined;
  const ask: Acquirer["ask"] = async (...asked) => {
    inFlight += 1;
    try {
      return await link.ask(...asked);
    } finally {
      inFlight -= 1;
      if (inFlight === 0) onNone();
    }
  };
  return {
    acquirer: askedBy(link, ask),
    async closeOnceAnswered(timeoutMs: number): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      onNone = resolve;
      if (inFlight > 0) await within(timeoutMs, promise);
      await link.close();
    },
  };
}
