import { parseArgs } from "node:util";
import { runCommand } from "../../../bench/command.ts";
import { runHabits } from "./run.ts";

// `npm run acquirer-habits -- --seed N --commands N`: exit code 1 if the host's books and the IPNs differ anywhere
// without an open event of it. `--keep <folder>` keeps there what explains a difference: the logs of the instances, the
// messages at the host, and the rows of the database.
const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    commands: { type: "string", default: "20000" },
    keep: { type: "string" },
  },
});
const [seed, commands] = [Number(values.seed), Number(values.commands)];

const code = await runCommand(async (cleanup) => {
  const { differences, met, reached } = await runHabits({ seed, commands, keep: values.keep }, cleanup, (line) =>
    process.stderr.write(`${line}\n`),
  );
  for (const [habit, times] of [...met].sort()) process.stderr.write(`${habit} × ${times}\n`);
  for (const { key, why, isOpen } of differences) {
    process.stdout.write(`${key}: ${why}${isOpen ? ", with an open event" : ""}\n`);
  }
  const open = differences.filter(({ isOpen }) => isOpen).length;
  const sums = { seed, commands, reached_host: reached, differences: differences.length, open_events: open };
  process.stdout.write(`${JSON.stringify(sums)}\n`);
  return open === differences.length ? 0 : 1;
});
process.exit(code);
