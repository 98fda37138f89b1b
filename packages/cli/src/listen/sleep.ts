/** Resolves after `durationMs`, at once where those are over, or when the signal is aborted. */
export function sleep(durationMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, Math.max(0, durationMs));
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
}
