/** The way between one process and the database, or to one home. It may be cut in both directions or in one. */
export class Line {
  readonly #parts: readonly Line[];
  /** Statements do not arrive. */
  losesStatements = false;
  /** Statements are executed, and their answers are lost. */
  losesAnswers = false;
  /** As if cut in both directions, also after `heal`. */
  isBroken = false;

  /** @param parts other lines that it leads over */
  constructor(parts: readonly Line[] = []) {
    this.#parts = parts;
  }

  get isCut(): boolean {
    return this.losesStatements || this.isBroken || this.#parts.some(({ isCut }) => isCut);
  }

  get isOneWay(): boolean {
    return this.losesAnswers || this.#parts.some(({ isOneWay }) => isOneWay);
  }

  heal(): void {
    this.losesStatements = false;
    this.losesAnswers = false;
  }
}
