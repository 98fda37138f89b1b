/** The way between one process and the database, which may be cut in both directions or in one. */
export class Line {
  /** Statements do not arrive. */
  losesStatements = false;
  /** Statements are executed, and their answers are lost. */
  losesAnswers = false;
  /** As if cut in both directions, also after `heal`. */
  isBroken = false;

  heal(): void {
    this.losesStatements = false;
    this.losesAnswers = false;
  }
}
