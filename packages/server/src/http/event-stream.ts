import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";

/** A stream ends after this time, so that its reader is authorised again: a browser reconnects by itself. */
const streamMs = 5 * 60_000;

/** Server-sent events: the result of `read`, every `everyMs`, until `signal` aborts. */
export function eventStream(read: () => Promise<unknown>, everyMs: number, signal: AbortSignal): Readable {
  const ends = AbortSignal.any([signal, AbortSignal.timeout(streamMs)]);
  async function* events(): AsyncGenerator<string> {
    yield `retry: ${everyMs}\n\n`;
    while (!ends.aborted) {
      yield `data: ${JSON.stringify(await read())}\n\n`;
      await sleep(everyMs, undefined, { signal: ends }).catch(() => undefined);
    }
  }
  return Readable.from(events());
}
