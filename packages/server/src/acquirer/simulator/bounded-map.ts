/** A bounded map: beyond the bound the oldest entry is forgotten. */
export class BoundedMap<Key, Value extends object> {
  readonly #byKey = new Map<Key, Value>();
  readonly #entriesMax: number;
  readonly #keyOf: (value: Value) => Key;
  /** By age. To find the oldest in a Map grows slower with every one that was deleted before it. */
  readonly #ring: Value[] = [];
  /** The index of the next one: the oldest's, once the ring is full. */
  #next = 0;

  constructor(entriesMax: number, keyOf: (value: Value) => Key) {
    this.#entriesMax = entriesMax;
    this.#keyOf = keyOf;
  }

  get(key: Key): Value | undefined {
    return this.#byKey.get(key);
  }

  /** Takes the place of an earlier one under the same key. */
  enter(value: Value): void {
    const oldest = this.#ring[this.#next];
    if (oldest !== undefined) this.#forget(oldest);
    this.#byKey.set(this.#keyOf(value), value);
    this.#ring[this.#next] = value;
    this.#next = (this.#next + 1) % this.#entriesMax;
  }

  /** In the order in which their keys were first entered. */
  values(): IterableIterator<Value> {
    return this.#byKey.values();
  }

  #forget(value: Value): void {
    const key = this.#keyOf(value);
    if (this.#byKey.get(key) === value) this.#byKey.delete(key);
  }
}
