import type { Cipher } from "@paybell/contract";
import { idTimeMs, isUuidV7 } from "../ids.ts";
import type { Partner } from "../partners/partner.ts";
import type { SandboxReceiverControl } from "../sandbox-receiver-control.ts";
import { receiverKeys } from "./follow-keys.ts";
import { failedLines, ipnLines, type OutputStyle, refusedLines } from "./output.ts";
import { type SandboxReceiver, startReceiver } from "./receiver.ts";

interface ObservedReceiver {
  readonly home: string;
  readonly partner: Partner;
  /** The URL of the last start. */
  readonly lastUrl: string | undefined;
  readonly cipherNow: () => Cipher;
  readonly desk: SandboxReceiverControl;
  readonly style: OutputStyle;
  readonly tell: (lines: readonly string[]) => void;
}

/**
 * Starts the sandbox partner's receiver, which prints deliveries to the terminal, if possible on the port of the last
 * start.
 */
export async function startObservedReceiver(told: ObservedReceiver): Promise<SandboxReceiver> {
  const { home, partner, lastUrl, cipherNow, desk, style, tell } = told;
  const start = {
    home,
    desk,
    keys: receiverKeys(partner),
    onIpn: (received: Parameters<typeof ipnLines>[0]["received"]) => {
      const { id } = received.ipn;
      // Our own ids contain the time of the command; a switch's may not.
      const afterCommandMs = isUuidV7(id) ? { afterCommandMs: Math.max(0, Date.now() - idTimeMs(id)) } : {};
      tell(ipnLines({ received, cipher: cipherNow(), ...afterCommandMs }, style));
    },
    onRefused: (refused: Parameters<typeof refusedLines>[0]) => tell(refusedLines(refused, style)),
    onFailed: (failed: Parameters<typeof failedLines>[0]) => tell(failedLines(failed, style)),
  };
  // Pending notifications go to the port of the last start.
  const port = lastUrl === undefined ? 0 : Number(new URL(lastUrl).port);
  try {
    return await startReceiver({ ...start, port });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE" || port === 0) throw error;
    return startReceiver({ ...start, port: 0 });
  }
}
