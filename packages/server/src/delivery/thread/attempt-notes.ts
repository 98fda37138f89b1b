import type { FromWorker } from "./messages.ts";

type Note = FromWorker["attempted"][number];

/** Beyond so many that the main thread has not taken in, attempts are counted alone. */
export const notesMax = 8_192;

/**
 * What a worker tells the main thread of its attempts, for metrics and for whoever looks on. A main thread that stands
 * still must not fill the memory: what it would be told beyond the bound is left out.
 */
export class AttemptNotes {
  readonly #tell: (note: Note) => void;
  readonly #onLeftOut: (attempts: number) => void;
  #underWay = 0;
  #leftOut = 0;

  /** @param onLeftOut the main thread goes on: so many attempts were not told */
  constructor(tell: (note: Note) => void, onLeftOut: (attempts: number) => void) {
    this.#tell = tell;
    this.#onLeftOut = onLeftOut;
  }

  add(note: Note): void {
    if (this.#underWay >= notesMax) {
      this.#leftOut += 1;
      return;
    }
    this.#underWay += 1;
    this.#tell(note);
  }

  /** The main thread has taken so many in. */
  noted(notes: number): void {
    this.#underWay -= notes;
    if (notes === 0 || this.#leftOut === 0) return;
    this.#onLeftOut(this.#leftOut);
    this.#leftOut = 0;
  }
}
