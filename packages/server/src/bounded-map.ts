interface Entry<Key, Value> {
  readonly key: Key;
  readonly value: Value;
}

/** A bounded map: beyond the bound the entry that was set first is forgotten. */
export class BoundedMap<Key, Value> {
  readonly #byKey = new Map<Key, Entry<Key, Value>>();
  readonly #entriesMax: number;
  /** By age. To find the oldest in a Map grows slower with every one that was deleted before it. */
  readonly #ring: Entry<Key, Value>[] = [];
  /** The index of the next one: the oldest's, once the ring is full. */
  #next = 0;

  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax;
  }

  get(key: Key): Value | undefined {
    return this.#byKey.get(key)?.value;
  }

  /** Takes the place of an earlier one under the same key. */
  set(key: Key, value: Value): void {
    const oldest = this.#ring[this.#next];
    // One that was replaced since has made room already.
    if (oldest !== undefined && this.#byKey.get(oldest.key) === oldest) this.#byKey.delete(oldest.key);
    const entry = { key, value };
    this.#byKey.set(key, entry);
    this.#ring[this.#next] = entry;
    this.#next = (this.#next + 1) % this.#entriesMax;
  }

  delete(key: Key): void {
    this.#byKey.delete(key);
  }

  clear(): void {
    this.#byKey.clear();
  }

  /** In the order in which their keys were first set. */
  values(): Value[] {
    return [...this.#byKey.values()].map(({ value }) => value);
  }
}

/** For what is done at most once in a while for each key. The number of keys is bounded. */
export class Cooldown<Key> {
  readonly #everyMs: number;
  readonly #begunAtMs: BoundedMap<Key, number>;

  constructor(everyMs: number, keysMax: number) {
    this.#everyMs = everyMs;
    this.#begunAtMs = new BoundedMap(keysMax);
  }

  /** Whether it may be done now. If so, it counts as done. */
  begin(key: Key, nowMs: number): boolean {
    const begunAtMs = this.#begunAtMs.get(key);
    if (begunAtMs !== undefined && nowMs - begunAtMs < this.#everyMs) return false;
    this.#begunAtMs.set(key, nowMs);
    return true;
  }

  /** It may be done again at once. */
  end(key: Key): void {
    this.#begunAtMs.delete(key);
  }
}
