/**
 * The known name with the smallest edit distance; undefined if even that is too different.
 *
 * @param prefix of every name: it does not count as similarity
 */
export function nearest(name: string, known: readonly string[], prefix = ""): string | undefined {
  const own = name.slice(prefix.length);
  const ranked = known
    .map((candidate) => ({ candidate, distance: editDistance(own, candidate.slice(prefix.length)) }))
    .sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  return best !== undefined && best.distance <= Math.ceil(own.length / 3) ? best.candidate : undefined;
}

/** Levenshtein: insertions, deletions and replacements of one letter. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
