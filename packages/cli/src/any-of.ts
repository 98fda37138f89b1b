/** As help names the values of an option: "a, b or c". */
export function anyOf(values: readonly string[]): string {
  return new Intl.ListFormat("en-GB", { type: "disjunction" }).format(values);
}
