import { ConfigError } from "../config.ts";
import { firstFailure } from "../errors.ts";
import { interruptedCode, stopSignalsOf } from "./signals.ts";

/** An error at startup is printed as sentences, not as a stack. */
export async function guarded({ stdout, stderr }: NodeJS.Process, run: () => Promise<number>): Promise<number> {
  // If the terminal closes, only output is lost. Ending at once would leave PostgreSQL running.
  for (const stream of [stdout, stderr]) stream.on("error", () => undefined);
  try {
    return await run();
  } catch (error) {
    stderr.write(`${explain(error)}\n`);
    return 1;
  }
}

/** A command that a signal interrupts. It first undoes what it began; a second signal does not wait for that. */
export function interruptible(process: NodeJS.Process, run: (signal: AbortSignal) => Promise<number>): Promise<number> {
  return guarded(process, async () => {
    const signals = stopSignalsOf(process);
    const interruption = new AbortController();
    void signals.first.then(() => interruption.abort());
    try {
      return await Promise.race([run(interruption.signal), signals.second.then(() => interruptedCode)]);
    } catch (error) {
      if (!interruption.signal.aborted) throw error;
      return interruptedCode;
    } finally {
      signals.release();
    }
  });
}

interface Explained {
  readonly code: string;
  readonly port: number;
  readonly setting: string;
  readonly remedy: string;
}

function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.problems.map((problem) => `paybell: ${problem}`).join("\n");
  const { message, code, port, setting = "PAYBELL_PORT", remedy }: Error & Partial<Explained> = firstFailure(error);
  if (code === "EADDRINUSE") {
    return `paybell: port ${port ?? ""} is in use by another program. Stop it, or choose another with ${setting}.`;
  }
  if (code === "EACCES" && port !== undefined) {
    return `paybell: port ${port} needs special rights. Choose one above 1023 with ${setting}.`;
  }
  return remedy === undefined ? `paybell: ${message}` : `paybell: ${message} ${remedy}`;
}
