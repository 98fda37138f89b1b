/** Lists the values of an option for the help: "a, b or c". */
export function anyOf(values: readonly string[]): string {
  return new Intl.ListFormat("en-GB", { type: "disjunction" }).format(values);
}
