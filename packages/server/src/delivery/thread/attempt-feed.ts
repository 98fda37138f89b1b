import type { FromWorker } from "./messages.ts";

type Note = FromWorker["attempted"][number];

/** Beyond this number of unacknowledged notes, attempts are only counted. */
export const notesMax = 8_192;

/**
 * A worker's notes about its attempts for the main thread, for metrics and the sandbox. A stalled main thread must not
 * fill the memory, so notes beyond the bound are left out.
 */
export class AttemptFeed {
  readonly #send: (note: Note) => void;
  readonly #onLeftOut: (attempts: number) => void;
  #underWay = 0;
  #leftOut = 0;

  /** @param onLeftOut the main thread continues: this many attempts were left out */
  constructor(tell: (note: Note) => void, onLeftOut: (attempts: number) => void) {
    this.#send = tell;
    this.#onLeftOut = onLeftOut;
  }

  add(note: Note): void {
    if (this.#underWay >= notesMax) {
      this.#leftOut += 1;
      return;
    }
    this.#underWay += 1;
    this.#send(note);
  }

  /** The main thread has acknowledged this many. */
  noted(notes: number): void {
    this.#underWay -= notes;
    if (notes === 0 || this.#leftOut === 0) return;
    this.#onLeftOut(this.#leftOut);
    this.#leftOut = 0;
  }
}
