/**
 * Gathers what one turn of the event loop has for another thread into one message: each message costs more than what is
 * in it.
 */
export class Outbox<Message extends object> {
  readonly #empty: () => Message;
  readonly #post: (message: Message) => void;
  #message: Message;
  #posting: NodeJS.Immediate | undefined;

  constructor(empty: () => Message, post: (message: Message) => void) {
    this.#empty = empty;
    this.#post = post;
    this.#message = empty();
  }

  /** The message that is being written; it leaves after this turn. */
  get message(): Message {
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
