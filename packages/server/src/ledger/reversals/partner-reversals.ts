import { setTimeout as pause } from "node:timers/promises";
import type { Logger } from "pino";
import { succeedReversal } from "../../commands/reversal.ts";
import type { LeaseId } from "../../ids.ts";
import type { LeaseHolder } from "../../leases/lease.ts";
import type { Partner } from "../../partners/partner.ts";
import { approvedCode, malfunctionCode } from "../../response-codes.ts";
import { type Completer, resultOf, reversalResult } from "../completer.ts";
import type { Transaction, TransactionStore } from "../store.ts";
import type { ReversalStore, Reverser } from "./reverser.ts";

export interface PartnerReversalsParts {
  readonly transactions: Pick<TransactionStore, "find">;
  readonly completer: Completer;
  readonly reversals: Pick<ReversalStore, "queue">;
  readonly reverser: Pick<Reverser, "wake">;
  readonly lease: Pick<LeaseHolder, "current">;
  readonly log: Logger;
}

const againMs = 1_000;

/** Runs the REVERSALs of partners: of an original that is in flight, that has ended, or that never was. */
export class PartnerReversals {
  readonly #parts: PartnerReversalsParts;
  readonly #awaitSent: (begun: Transaction) => Promise<Transaction>;

  /** @param awaitSent waits for the end of one that the reverser ends, on whichever instance */
  constructor(parts: PartnerReversalsParts, awaitSent: (begun: Transaction) => Promise<Transaction>) {
    this.#parts = parts;
    this.#awaitSent = awaitSent;
  }

  /**
   * While this instance lives, no other runs this REVERSAL. So failures, such as an unavailable database, are retried
   * until it is stored or others take it over.
   */
  async runUntilTaken(partner: Partner, begun: Transaction, stopping: AbortSignal): Promise<Transaction> {
    for (;;) {
      try {
        return await this.run(partner, begun);
      } catch (error) {
        if (stopping.aborted || this.#parts.lease.current() !== begun.runBy) throw error;
        this.#parts.log.error({ err: error, transaction: begun.id }, "a REVERSAL failed, and is tried again");
      }
      await pause(againMs);
    }
  }

  /** A running original ends as if it had timed out, a successful one goes to the reverser. */
  async run(partner: Partner, begun: Transaction): Promise<Transaction> {
    const { completer, reversals, reverser, transactions } = this.#parts;
    const leaseId = begun.runBy as LeaseId;
    if (begun.facts.kind !== "system") throw new Error("A REVERSAL is a system command.");
    if (begun.originalId === null)
      return (await completer.complete(begun, succeedReversal(begun.facts), leaseId)) ?? begun;
    for (;;) {
      const original = await transactions.find(begun.partnerId, begun.originalId);
      if (original === undefined) throw new Error(`There is no transaction ${begun.originalId} to reverse.`);
      const end = endOf(original);
      if (original.state === "INIT" && original.runBy !== null) {
        const result = resultOf(original, { kind: "no_answer" }, partner, begun.id);
        if ((await completer.complete(original, result, original.runBy)) === undefined) continue;
      } else if (end !== undefined) {
        return (await completer.complete(begun, reversalResult(begun, end), leaseId)) ?? begun;
      } else if (!(await reversals.queue(begun.partnerId, original.id, begun.id))) {
        // An operator has let it stand meanwhile.
        continue;
      }
      reverser.wake();
      return await this.#awaitSent(begun);
    }
  }
}

/** How a REVERSAL of it ends without a Reversal; undefined: one is needed, or under way. */
function endOf({ state, reversal }: Transaction): Parameters<typeof reversalResult>[1] | undefined {
  if (reversal === "done" || (state === "ERROR" && reversal === null)) {
    return { state: "DONE", responseCode: approvedCode };
  }
  return reversal === "stands" ? { state: "PARKED", responseCode: malfunctionCode } : undefined;
}
