import { setTimeout as sleep } from "node:timers/promises";
import { type Command, Option } from "commander";
import { type AccessOptions, readClientSettings, withAccessOptions } from "../client/connection.ts";
import { type CommandContext, command, ends } from "../shell/command.ts";
import { type ExitCode, exitCodes } from "../shell/failure.ts";
import { wholeNumber } from "../shell/options.ts";
import { type JsonOption, print, styleFor } from "../shell/output.ts";
import { type Overview, overviewLines } from "./overview.ts";

interface TopOptions extends AccessOptions, JsonOption {
  readonly interval: number;
  readonly once?: boolean;
}

/** Moves to the upper left corner, and clears what is below. */
const redraw = "\u001b[H\u001b[J";

export function topCommand(context: CommandContext): Command {
  const made = command("top", {
    summary: "watch deliveries: partners in trouble now, rates, latencies and backlog",
    description:
      "On a terminal it is drawn again every few seconds until Ctrl-C. With --once, with --json, or where the output " +
      "is not a terminal, it is printed once.",
    examples: ["paybell top", "paybell top --once"],
    exitCodes: { 0: "printed once, or stopped by Ctrl-C" },
  })
    .addOption(new Option("--interval <seconds>", "how often it is drawn").default(2).argParser(wholeNumber(1, 9_999)))
    .option("--once", "print it once");
  return withAccessOptions(made).action(ends(context, (options: TopOptions) => top(context, options), "finishes"));
}

async function top(context: CommandContext, options: TopOptions): Promise<ExitCode> {
  const api = (await readClientSettings(context, options)).operator();
  const { stdout, signal } = context;
  const style = styleFor(stdout, context.env);
  const draw = async () => {
    const overview = await api.get<Overview>("/operator/v1/overview", { span: "hour" }, { signal });
    const width = stdout.columns ?? 80;
    return { overview, lines: overviewLines(overview, { style, width, nowMs: context.nowMs() }) };
  };
  if (options.once === true || options.json === true || stdout.isTTY !== true) {
    const { overview, lines } = await draw();
    print(context, options, overview, lines);
    return exitCodes.ok;
  }
  try {
    for (;;) {
      const { lines } = await draw();
      stdout.write(`${redraw}${lines.join("\n")}\n`);
      await sleep(options.interval * 1_000, undefined, { signal });
    }
  } catch (error) {
    // Ctrl-C is how it ends.
    if (!signal.aborted) throw error;
    return exitCodes.ok;
  }
}
