/** The receiver's treatment of the next deliveries. */
export const receiverModes = ["accept", "fail", "hang", "refuse", "reject"] as const;
export type ReceiverMode = (typeof receiverModes)[number];

/** A delivery to the sandbox partner's receiver. */
export interface ArrivedDelivery {
  /** Counts up from 1. */
  readonly no: number;
  readonly at: string;
  readonly notificationId: string;
  readonly attempt: string;
  /** The receiver's response; null: none. */
  readonly status: number | null;
  /** As it was sent, encrypted. */
  readonly body: string;
  /** Its content, decrypted and verified; null if it was not opened. */
  readonly ipn: Readonly<Record<string, unknown>> | null;
}

const arrivedMax = 50;
const bodyCharactersMax = 16_384;

/** Controls the sandbox's receiver, and records its last deliveries. */
export class SandboxReceiverControl {
  mode: ReceiverMode = "accept";
  #arrived: ArrivedDelivery[] = [];
  #no = 0;

  /** @returns the newest first */
  get arrived(): readonly ArrivedDelivery[] {
    return this.#arrived;
  }

  add(arrived: Omit<ArrivedDelivery, "no" | "at">): void {
    this.#no += 1;
    const body =
      arrived.body.length > bodyCharactersMax ? `${arrived.body.slice(0, bodyCharactersMax)}…` : arrived.body;
    const one = { ...arrived, no: this.#no, at: new Date().toISOString(), body };
    this.#arrived = [one, ...this.#arrived].slice(0, arrivedMax);
  }
}
