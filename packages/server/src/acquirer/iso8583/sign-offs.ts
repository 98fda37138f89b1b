/** The sign-offs of an acquirer's hosts, for all instances: a sign-on belongs to a host, and not to a connection. */
export interface SignOffStore {
  /** The hosts that signed off, and have not signed on since. */
  read(): Promise<ReadonlySet<string>>;
  /** Durable, and announced to all instances, when it resolves. */
  note(host: string, isSignedOff: boolean): Promise<void>;
  /** Other instances are signed on: a sign-off by this one would be theirs too. */
  isUsedByOthers(): Promise<boolean>;
}

/** A process alone, such as a certification. */
const unshared: SignOffStore = {
  read: async () => new Set(),
  note: async () => undefined,
  isUsedByOthers: async () => false,
};

/** The hosts that have signed off: they take no message until they, or we, sign on. */
export class SignOffs {
  readonly #store: SignOffStore;
  readonly #isShared: boolean;
  readonly #listeners: (() => void)[] = [];
  #hosts: ReadonlySet<string> = new Set();
  /** Changes by this process: what is read must not be older. */
  #changes = 0;

  constructor(store: SignOffStore | undefined) {
    this.#store = store ?? unshared;
    this.#isShared = store !== undefined;
  }

  /** From now on called whenever other hosts have signed off. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  changed(): void {
    for (const listener of this.#listeners) listener();
  }

  has(host: string): boolean {
    return this.#hosts.has(host);
  }

  /** Other instances may have noted a change. */
  async reread(): Promise<void> {
    if (!this.#isShared) return;
    const changes = this.#changes;
    const hosts = await this.#store.read();
    if (changes !== this.#changes) return;
    const isSame = hosts.size === this.#hosts.size && [...hosts].every((host) => this.#hosts.has(host));
    this.#hosts = hosts;
    if (!isSame) this.changed();
  }

  /** Counts at once, also if it cannot be stored. The caller says when the listeners are called. */
  async note(host: string, isSignedOff: boolean): Promise<void> {
    this.#changes += 1;
    this.#hosts = new Set([...[...this.#hosts].filter((one) => one !== host), ...(isSignedOff ? [host] : [])]);
    await this.#store.note(host, isSignedOff);
  }

  isUsedByOthers(): Promise<boolean> {
    return this.#store.isUsedByOthers();
  }
}
