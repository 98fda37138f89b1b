/** Shares one running query among concurrent callers, and caches its answer for a while. A failure is not cached. */
export function cachedFor<Value>(keptMs: number, ask: () => Promise<Value>): () => Promise<Value> {
  let kept: Promise<Value> | undefined;
  let untilMs = Number.POSITIVE_INFINITY;
  return () => {
    if (kept !== undefined && performance.now() < untilMs) return kept;
    untilMs = Number.POSITIVE_INFINITY;
    const asked = ask();
    kept = asked;
    asked.then(
      () => {
        untilMs = performance.now() + keptMs;
      },
      () => {
        if (kept === asked) kept = undefined;
      },
    );
    return asked;
  };
}
