import cliProgress from "cli-progress";
import type { World } from "./world.ts";

export interface Progress {
  /** @param total where it is known only on the way */
  update(done: number, total?: number): void;
  /** Takes it away: what was reached is told by whoever made it. */
  stop(): void;
}

const silent: Progress = { update: () => undefined, stop: () => undefined };

/** A bar, or a count where no total is known, on stderr; nothing where that is no terminal. */
export function progress({ stderr }: Pick<World, "stderr">, what: string, total?: number): Progress {
  if (stderr.isTTY !== true) return silent;
  const format = total === undefined ? `${what}  {value}` : `${what}  {bar}  {value}/{total}  {eta_formatted}`;
  const options = { format, stream: stderr, clearOnComplete: true, hideCursor: true };
  const bar = new cliProgress.SingleBar(options, cliProgress.Presets.shades_classic);
  bar.start(total ?? 0, 0);
  return {
    update(done, newTotal) {
      if (newTotal !== undefined) bar.setTotal(newTotal);
      bar.update(done);
    },
    stop: () => bar.stop(),
  };
}
