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
  if (stdin.isTTY !== true) throw refusal(`${what} There is no terminal to confirm it.`);
  // Not with readline's terminal mode, in which Ctrl-C would end only the question.
  const lines = createInterface({ input: stdin, output: stderr, terminal: false });
  try {
    const asked = lines.question(`${what} Go on? [y/N] `, { signal });
    // Ctrl-D ends the input without an answer.
    const answer = await Promise.race([asked, once(lines, "close").then(() => "")]);
    if (!/^y(es)?$/i.test(answer.trim())) throw refusal("You did not confirm.");
  } finally {
    lines.close();
  }
}

function refusal(why: string): Failure {
  return new Failure(`${why} Nothing was sent.`, { code: "not_confirmed", remedy: "Use --yes to confirm it." });
}
