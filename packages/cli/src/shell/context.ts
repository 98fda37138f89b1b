import type { Readable, Writable } from "node:stream";
import type { ExitCode } from "./failure.ts";

/** A stream that may be a terminal. */
export type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number };

/** Everything that a command may use of its machine: a test passes its own. */
export interface HostEnvironment {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  /** The requested output, and nothing else. */
  readonly stdout: Output;
  /** Errors, progress, and incidental messages. */
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Relative paths begin here. */
  readonly workingDirectory: string;
  readonly fetch: typeof fetch;
  /** Aborted at Ctrl-C; its reason is the signal's name. */
  readonly signal: AbortSignal;
  /** Milliseconds since 1970. */
  nowMs(): number;
  /** For the commands that run the service: they end by signals of their own. */
  readonly process: NodeJS.Process;
}

export interface CommandContext extends HostEnvironment {
  /** Sets the exit code, once everything is written. */
  conclude(code: ExitCode): void;
}
