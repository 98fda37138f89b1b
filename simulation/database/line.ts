/** The way between one process and the database, which may be cut in both directions or in one. */
export class Line {
  /** What is sent does not arrive. */
  losesStatements = false;
  /** What is sent is executed, and nobody hears of it. */
  losesAnswers = false;

  heal(): void {
    this.losesStatements = false;
    this.losesAnswers = false;
  }
}
