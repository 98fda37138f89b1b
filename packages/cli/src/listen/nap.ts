/** Waits, and can be waked. */
export class Nap {
  #wake: (() => void) | undefined;

  /** Resolves after `durationMs`, at `wake()`, or when the signal is aborted. */
  take(durationMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        this.#wake = undefined;
        resolve();
      };
      const timer = setTimeout(end, durationMs);
      this.#wake = end;
      if (signal.aborted) end();
      else signal.addEventListener("abort", end, { once: true });
    });
  }

  wake(): void {
    this.#wake?.();
  }
}
