/** A running server: a child of this process. */
export interface Postmaster {
  readonly pid: number;
  readonly socketDirectory: string;
  readonly port: number;
  readonly version: string;
  /** Sends it a signal, unless it is gone: its number may be another program's then. */
  signal(name: "SIGINT" | "SIGQUIT"): Promise<void>;
  /** Resolves when the process has ended, for any reason. */
  readonly gone: Promise<void>;
}

/**
 * The timeout of a start: after a crash at full load the log of 2 GB is replayed first, and interrupting only
 * repeats it.
 */
export const startTimeoutMs = 10 * 60_000;

/** The interval of polling a starting server. A start takes 60 ms, so a longer one would be noticeable. */
export const pollMs = 5;
