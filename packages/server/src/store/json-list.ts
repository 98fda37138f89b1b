/**
 * Many JSON texts as one parameter, for `string_to_array($n, E'\\x01')::json[]`. JSON escapes control characters, so
 * that U+0001 stands in none of them. Measured: the driver's own array of texts looks at every character of them to
 * escape it, which was a tenth of what a completion cost.
 */
export function jsonList(texts: readonly string[]): string {
  return texts.join("\u0001");
}
