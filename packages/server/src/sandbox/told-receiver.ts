import type { Cipher } from "@paybell/contract";
import { idTimeMs, isUuidV7 } from "../ids.ts";
import type { Partner } from "../partners/partner.ts";
import type { SandboxReceiverDesk } from "../sandbox-receiver-desk.ts";
import { receiverKeys } from "./follow-keys.ts";
import { type SandboxReceiver, startReceiver } from "./receiver.ts";
import { failedLines, ipnLines, type Look, refusedLines } from "./story.ts";

interface ToldReceiver {
  readonly home: string;
  readonly partner: Partner;
  /** Of the last start. */
  readonly lastUrl: string | undefined;
  readonly cipherNow: () => Cipher;
  readonly desk: SandboxReceiverDesk;
  readonly look: Look;
  readonly tell: (lines: readonly string[]) => void;
}

/** The sandbox partner's receiver, which tells the terminal what comes. Where it can, on the port of the last start. */
export async function startToldReceiver(told: ToldReceiver): Promise<SandboxReceiver> {
  const { home, partner, lastUrl, cipherNow, desk, look, tell } = told;
  const start = {
    home,
    desk,
    keys: receiverKeys(partner),
    onIpn: (received: Parameters<typeof ipnLines>[0]["received"]) => {
      const { id } = received.ipn;
      // Our own ids tell when the command came; one that a switch gave may not.
      const afterCommandMs = isUuidV7(id) ? { afterCommandMs: Math.max(0, Date.now() - idTimeMs(id)) } : {};
      tell(ipnLines({ received, cipher: cipherNow(), ...afterCommandMs }, look));
    },
    onRefused: (refused: Parameters<typeof refusedLines>[0]) => tell(refusedLines(refused, look)),
    onFailed: (failed: Parameters<typeof failedLines>[0]) => tell(failedLines(failed, look)),
  };
  // What is still pending goes to the port of the last start.
  const port = lastUrl === undefined ? 0 : Number(new URL(lastUrl).port);
  try {
    return await startReceiver({ ...start, port });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE" || port === 0) throw error;
    return startReceiver({ ...start, port: 0 });
  }
}
