import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../../clock.ts";
import type { PartnerId } from "../../ids.ts";
import { createResolver } from "../transport/resolve.ts";
import { type PostResult, Transport, type TransportOptions } from "../transport/transport.ts";
import { DirectSender, LeaseLost, type Posting, type Sending, type SendingPartner } from "./sender.ts";

/** How a thread's transport is made. */
export type SendingThreadData = Omit<TransportOptions, "clock" | "resolve">;

/** An attempt on its way to the thread: with a number, and its partner by id. */
export type Numbered<Work extends Sending | Posting> = Omit<Work, "partner"> & {
  readonly no: number;
  readonly partnerId: PartnerId;
};

/** What one turn of the main thread's event loop has for this one. */
export interface Orders {
  /** None of the partners that were told before will be named again without being told anew. */
  readonly forget: boolean;
  /** From now on these are as they stand here. */
  readonly partners: readonly SendingPartner[];
  readonly sendings: readonly Numbered<Sending>[];
  readonly postings: readonly Numbered<Posting>[];
}

/** What came of one attempt: a result; or nothing was sent. */
export type Done =
  | { readonly no: number; readonly result: PostResult }
  | { readonly no: number; readonly leaseLost: true }
  | { readonly no: number; readonly problem: string };

// The entry of the worker thread. Imported by the main thread, it does nothing.
if (parentPort !== null) serve(parentPort, workerData as SendingThreadData);

function serve(main: NonNullable<typeof parentPort>, data: SendingThreadData): void {
  const sender = new DirectSender(
    new Transport({ ...data, clock: systemClock, resolve: createResolver() }),
    systemClock,
  );
  const partners = new Map<PartnerId, SendingPartner>();
  let done: Done[] = [];

  const tell = (one: Done) => {
    // One message for all that comes in one turn of the event loop: each costs more than what is in it.
    if (done.length === 0) {
      setImmediate(() => {
        main.postMessage(done);
        done = [];
      });
    }
    done.push(one);
  };
  const partnerOf = (id: PartnerId): SendingPartner => {
    const partner = partners.get(id);
    if (partner === undefined) throw new Error("The partner was not told to this thread.");
    return partner;
  };
  const carryOut = (no: number, work: () => Promise<PostResult>) => {
    work().then(
      (result) => tell({ no, result: sendable(result) }),
      (error: unknown) =>
        tell(error instanceof LeaseLost ? { no, leaseLost: true } : { no, problem: messageOf(error) }),
    );
  };

  main.on("message", (orders: Orders | "close") => {
    if (orders === "close") {
      void sender.close();
      main.close();
      return;
    }
    if (orders.forget) partners.clear();
    for (const partner of orders.partners) partners.set(partner.id, partner);
    for (const { no, partnerId, ...sending } of orders.sendings) {
      carryOut(no, async () => sender.send({ ...sending, partner: partnerOf(partnerId) }));
    }
    for (const { no, partnerId, envelope, ...posting } of orders.postings) {
      // What comes from another thread is bytes without Buffer's methods.
      const body = Buffer.from(envelope.body.buffer, envelope.body.byteOffset, envelope.body.byteLength);
      carryOut(no, async () =>
        sender.post({ ...posting, envelope: { ...envelope, body }, partner: partnerOf(partnerId) }),
      );
    }
  });
}

/** A small Buffer is a part of a shared pool, all of which would be copied along with it. */
function sendable(result: PostResult): PostResult {
  if (!("answer" in result) || result.answer === null) return result;
  const answer = Buffer.allocUnsafeSlow(result.answer.length);
  result.answer.copy(answer);
  return { ...result, answer };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
