import cliProgress from "cli-progress";
import type { CommandContext } from "./command.ts";

export interface Progress {
  /** @param total where it is known only on the way */
  update(done: number, total?: number): void;
  /** Removes the bar; the caller reports the result. */
  stop(): void;
}

const silent: Progress = { update: () => undefined, stop: () => undefined };
/** Faster work needs no bar: it would only flash. */
const shownAfterMs = 400;

/** A bar on stderr, or a count if the total is unknown; nothing if stderr is not a terminal. */
export function progress(
  { stderr, nowMs }: Pick<CommandContext, "stderr" | "nowMs">,
  what: string,
  initialTotal?: number,
): Progress {
  if (stderr.isTTY !== true) return silent;
  const format = initialTotal === undefined ? `${what}  {value}` : `${what}  {bar}  {value}/{total}  {eta_formatted}`;
  // Ctrl-C may end us before stop(): a hidden cursor would stay hidden.
  const options = { format, stream: stderr, clearOnComplete: true, hideCursor: false, linewrap: true };
  const startedMs = nowMs();
  let bar: cliProgress.SingleBar | undefined;
  return {
    update(done, total = initialTotal ?? 0) {
      if (bar === undefined && nowMs() - startedMs >= shownAfterMs) {
        bar = new cliProgress.SingleBar(options, cliProgress.Presets.shades_classic);
        bar.start(total, done);
      }
      bar?.setTotal(total);
      bar?.update(done);
    },
    stop: () => bar?.stop(),
  };
}

/** Shows the progress of some work until it has ended. */
export async function showing<Value>(
  context: Pick<CommandContext, "stderr" | "nowMs">,
  what: string,
  total: number | undefined,
  work: (told: Progress["update"]) => Promise<Value>,
): Promise<Value> {
  const bar = progress(context, what, total);
  try {
    return await work(bar.update);
  } finally {
    bar.stop();
  }
}
