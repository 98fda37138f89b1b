/** Asks once however many look at the same time, and gives the same answer for a while. A failure is not kept. */
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
