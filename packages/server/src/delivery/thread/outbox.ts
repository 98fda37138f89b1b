/** A message while it is being written. */
export type Draft<Message> = {
  -readonly [Key in keyof Message]: Message[Key] extends readonly (infer Item)[] ? Item[] : Message[Key];
};

/**
 * Gathers what one turn of the event loop has for another thread into one message: each message costs more than what is
 * in it.
 */
export class Outbox<Message extends object> {
  readonly #empty: () => Draft<Message>;
  readonly #post: (message: Draft<Message>) => void;
  #message: Draft<Message>;
  #posting: NodeJS.Immediate | undefined;

  constructor(empty: () => Draft<Message>, post: (message: Draft<Message>) => void) {
    this.#empty = empty;
    this.#post = post;
    this.#message = empty();
  }

  /** The message that is being written; it leaves after this turn. */
  get message(): Draft<Message> {
    this.#posting ??= setImmediate(() => this.flush());
    return this.#message;
  }

  flush(): void {
    clearImmediate(this.#posting);
    this.#posting = undefined;
    const message = this.#message;
    this.#message = this.#empty();
    this.#post(message);
  }
}
