import { type Receiver, receiver } from "@paybell/partner";
import type { Caller } from "./caller.ts";

/** A partner as the service knows it. */
export interface RegisteredPartner {
  /** Its place among the partners of the stage. */
  readonly index: number;
  readonly id: string;
  readonly apiKey: string;
  readonly opener: Receiver;
}

// Short steps first, so that a receiver that comes back is tried soon; eight minutes in all, longer than any fault.
const retry = [1, 1, 2, 2, 3, 3, 5, 5, 5, 5, ...Array<number>(8).fill(10), ...Array<number>(12).fill(30)];
/** All partners' servers are one process: more connections at once than it can take would look like a fault. */
const maxInFlight = 8;

/** @param address where it may be called */
export async function registerPartner(
  caller: Caller,
  operatorToken: string,
  { index, callBackUrl, address }: { readonly index: number; readonly callBackUrl: string; readonly address: string },
): Promise<RegisteredPartner> {
  const { status, body } = await caller.call("POST", "/operator/v1/partners", operatorToken, {
    name: `Shop ${index}`,
    callBackUrl,
    callbackAddresses: [`${address}/32`],
    callingAddresses: ["127.0.0.1/32"],
    retry,
    maxInFlight,
    terminals: "open",
  });
  if (status !== 201) throw new Error(`A partner was not registered: ${status} ${JSON.stringify(body)}`);
  const { id, apiKey, encryptionKey, signingKey, webhookSecret } = body as Readonly<Record<string, string>>;
  if (id === undefined || apiKey === undefined || !encryptionKey || !signingKey || !webhookSecret)
    throw new Error("A registration has no keys.");
  return { index, id, apiKey, opener: receiver({ encryptionKey, signingKey, webhookSecret }) };
}
