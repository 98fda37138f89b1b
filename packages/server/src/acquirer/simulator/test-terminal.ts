import type { AcquirerMessage } from "../acquirer.ts";
import type { Behaviour } from "./behaviour.ts";

/** The result of a Settlement on these terminals; everything else on them is normal. */
const testTerminals: Readonly<Record<string, (afterUpload: boolean) => Behaviour | undefined>> = {
  SETTLE_REFUSED: () => ({ declines: "58" }),
  SETTLE_MISMATCH: (afterUpload) => (afterUpload ? undefined : { declines: "95" }),
  SETTLE_SILENT: () => ({ answers: "lost" }),
};

/** The result of a message because of its terminal; undefined if it is not a test terminal. */
export function testTerminal(message: AcquirerMessage): Behaviour | undefined {
  const { tid } = message;
  if (message.command !== "SETTLEMENT" || !Object.hasOwn(testTerminals, tid)) return undefined;
  return testTerminals[tid]?.(message.afterUpload);
}
