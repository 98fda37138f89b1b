import type { Clock } from "../../clock.ts";
import type { Partner } from "../../partners/partner.ts";
import type { PostResult, Transport } from "../transport/transport.ts";
import { type Envelope, type EnvelopeFor, makeEnvelope } from "./envelope.ts";

/** What sending needs to know of a partner. */
export type SendingPartner = Pick<Partner, "id" | "settings" | "keys">;

interface Bounds {
  /** For everything: connecting, sending, a repetition, the answer. Milliseconds from the start of the POST. */
  readonly deadlineMs: number;
  /** No POST starts past it: the lease ends then. By the clock's monotonicMs. */
  readonly startBeforeMs: number;
}

/** An attempt whose envelope is still to be made. */
export interface Sending extends Bounds {
  readonly partner: SendingPartner;
  /** The facts, as JSON text. */
  readonly content: string;
  readonly attempt: EnvelopeFor;
}

/** An attempt whose envelope was made before: that of a large IPN. */
export interface Posting extends Bounds {
  readonly partner: SendingPartner;
  readonly envelope: Envelope<Buffer>;
  readonly url: string;
}

/** Makes envelopes and POSTs them, in this thread or in another. */
export interface Sender {
  /**
   * One attempt. What becomes of the POST is a result.
   *
   * @throws LeaseLost (rejected), when nothing was sent because the lease was over
   */
  send(sending: Sending): Promise<PostResult>;
  /** As `send`. The envelope's memory may be given away. */
  post(posting: Posting): Promise<PostResult>;
  /** Ends every idle connection, and each busy one when it has its answer. */
  close(): Promise<void>;
}

/** The lease is over: the delivery is somebody else's to send. */
export class LeaseLost extends Error {
  override readonly name = "LeaseLost";

  constructor() {
    super("the lease ended before it was sent");
  }
}

/** Seals and POSTs in the thread that asks. */
export class DirectSender implements Sender {
  readonly #transport: Transport;
  readonly #clock: Pick<Clock, "monotonicMs">;

  constructor(transport: Transport, clock: Pick<Clock, "monotonicMs">) {
    this.#transport = transport;
    this.#clock = clock;
  }

  async send({ partner, content, attempt, deadlineMs, startBeforeMs }: Sending): Promise<PostResult> {
    const envelope = makeEnvelope(content, partner, attempt);
    return this.#post(partner, attempt.callbackUrl, envelope, { deadlineMs, startBeforeMs });
  }

  async post({ partner, envelope, url, deadlineMs, startBeforeMs }: Posting): Promise<PostResult> {
    return this.#post(partner, url, envelope, { deadlineMs, startBeforeMs });
  }

  close(): Promise<void> {
    this.#transport.close();
    return Promise.resolve();
  }

  #post(
    partner: SendingPartner,
    url: string,
    { headers, body }: Envelope<string | Buffer>,
    { deadlineMs, startBeforeMs }: Bounds,
  ): Promise<PostResult> {
    if (this.#clock.monotonicMs() >= startBeforeMs) throw new LeaseLost();
    return this.#transport.post({ partner, url, headers, body, deadlineMs });
  }
}
