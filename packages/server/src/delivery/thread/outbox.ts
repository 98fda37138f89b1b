/** A message while it is being written. */
export type MessageDraft<Message> = {
  -readonly [Key in keyof Message]: Message[Key] extends readonly (infer Item)[] ? Item[] : Message[Key];
};

/**
 * Collects what one turn of the event loop has for another thread into one message, because each message costs more
 * than its content.
 */
export class Outbox<Message extends object> {
  readonly #empty: () => MessageDraft<Message>;
  readonly #post: (message: MessageDraft<Message>) => void;
  #message: MessageDraft<Message>;
  #posting: NodeJS.Immediate | undefined;

  constructor(empty: () => MessageDraft<Message>, post: (message: MessageDraft<Message>) => void) {
    this.#empty = empty;
    this.#post = post;
    this.#message = empty();
  }

  /** The message being written; it is posted after this turn. */
  get message(): MessageDraft<Message> {
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
