import { once } from "node:events";
import { createInterface } from "node:readline/promises";
import type { CommandContext } from "./context.ts";
import { Failure } from "./failure.ts";

/**
 * Asks the user at the terminal.
 *
 * @param what the action, as a sentence
 * @throws Failure if the user does not agree, or there is no terminal
 */
export async function confirm({ stdin, stderr, signal }: CommandContext, what: string): Promise<void> {
  if (stdin.isTTY !== true) throw refusal(`${what} Nobody is at a terminal to agree.`);
  // Not as a terminal of its own: Ctrl-C would end the question, and not the command.
  const lines = createInterface({ input: stdin, output: stderr, terminal: false });
  try {
    const asked = lines.question(`${what} Go on? [y/N] `, { signal });
    // Ctrl-D ends the input without an answer.
    const answer = await Promise.race([asked, once(lines, "close").then(() => "")]);
    if (!/^y(es)?$/i.test(answer.trim())) throw refusal("You did not agree.");
  } finally {
    lines.close();
  }
}

function refusal(why: string): Failure {
  return new Failure(`${why} Nothing was sent.`, { code: "not_confirmed", remedy: "Say --yes where it is meant." });
}
