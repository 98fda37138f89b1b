import type { PartnerId } from "../../ids.ts";
import type { PostResult } from "../transport/transport.ts";
import type { Posting, Sender, Sending } from "./sender.ts";

/**
 * Several senders as one: each partner's attempts go to the same of them, so that its connections, its cached keys and
 * its address guard exist once.
 */
export class SendingThreads<One extends Sender> implements Sender {
  readonly all: readonly One[];

  /** @param all one or more */
  constructor(all: readonly One[]) {
    if (all.length === 0) throw new RangeError("There must be a sender.");
    this.all = all;
  }

  send(sending: Sending): Promise<PostResult> {
    return this.#of(sending.partner.id).send(sending);
  }

  post(posting: Posting): Promise<PostResult> {
    return this.#of(posting.partner.id).post(posting);
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map((one) => one.close()));
  }

  #of(partnerId: PartnerId): One {
    // A UUIDv7 ends in random bits.
    const one = this.all[Number.parseInt(partnerId.slice(-6), 16) % this.all.length];
    if (one === undefined) throw new RangeError(`${partnerId} is no id.`);
    return one;
  }
}
