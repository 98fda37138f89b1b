import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import type { LeaseId, PartnerId, TransactionId } from "../../ids.ts";
import type { LeaseHolder } from "../../leases/lease.ts";
import type { Partner } from "../../partners/partner.ts";
import { type Completer, resultOf } from "../completer.ts";
import type { Transaction, TransactionStore } from "../store.ts";
import type { Reverser } from "./reverser.ts";

export interface InDoubtParts {
  readonly transactions: Pick<TransactionStore, "takeOver" | "initsOf">;
  readonly completer: Completer;
  readonly reverser: Pick<Reverser, "wake">;
  readonly lease: Pick<LeaseHolder, "current">;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly log: Logger;
}

/** What the ledger does about the commands that it runs itself. */
interface Runner {
  /** The commands that it runs, and those whose INIT is being written. */
  running(): Iterable<TransactionId>;
  reverse(partner: Partner, begun: Transaction): Promise<unknown>;
}

const takeOverRowsMax = 500;
/** After a write failed. */
const searchAfterMs = [0, 1_000, 3_000, 7_000, 15_000, 30_000, 60_000] as const;

/** The commands that have begun and that nobody runs: those of dead instances, and own ones without a stored result. */
export class InDoubt {
  readonly #parts: InDoubtParts;
  readonly #runner: Runner;
  /** Commands that nobody runs, and that have not ended yet. */
  readonly #commands = new Map<TransactionId, Transaction>();
  /** When to search for INITs that are this instance's without its knowledge. */
  #searchesMs: readonly number[] = [];

  constructor(parts: InDoubtParts, runner: Runner) {
    this.#parts = parts;
    this.#runner = runner;
  }

  /** Nobody runs the command any more. No other instance takes it over while the lease of this one lives. */
  add(begun: Transaction): void {
    this.#commands.set(begun.id, begun);
  }

  /** A write failed. It may have been committed, or may be yet: the server, or the network, may still have it. */
  searchLater(): void {
    const nowMs = this.#parts.clock.monotonicMs();
    this.#searchesMs = searchAfterMs.map((afterMs) => nowMs + afterMs);
  }

  /**
   * Ends commands of dead instances, and own ones that nobody runs: as ERROR 96 in doubt, or as the partner's Reversal
   * that was requested. Those that cannot be ended now belong to this instance, and the next call retries them.
   * @returns how many there were
   */
  async takeOver(partnerOf: (id: PartnerId) => Promise<Partner | undefined>): Promise<number> {
    const leaseId = this.#parts.lease.current();
    if (leaseId === undefined) return 0;
    const nowMs = this.#parts.clock.monotonicMs();
    if (this.#searchesMs.some((atMs) => atMs <= nowMs)) await this.#findOwn(leaseId, nowMs);
    const taken = await this.#orSearchLater(this.#parts.transactions.takeOver(leaseId, takeOverRowsMax));
    for (const transaction of taken) this.add(transaction);
    const commands = [...this.#commands.values()];
    await Promise.all(commands.map((transaction) => this.#endTaken(transaction, partnerOf)));
    return commands.length;
  }

  /** Ends a command whose outcome is not known. @returns undefined if it has ended otherwise, or is another instance's */
  async end(partner: Partner, begun: Transaction, leaseId: LeaseId): Promise<Transaction | undefined> {
    const { completer, log, reverser } = this.#parts;
    const result = resultOf(begun, { kind: "instance_gone" }, partner);
    const ended = await completer.complete(begun, result, leaseId);
    if (ended === undefined) return undefined;
    log.warn({ transaction: begun.id }, "a command in doubt ended as ERROR 96");
    completer.record(begun, "in_doubt", { command: begun.command });
    if (result.reversal) reverser.wake();
    return ended;
  }

  /** Finds INITs of this instance that it does not run, because the answer to a write was lost. */
  async #findOwn(leaseId: LeaseId, nowMs: number): Promise<void> {
    const known = () => [...this.#runner.running(), ...this.#commands.keys()];
    const before = known();
    this.#searchesMs = this.#searchesMs.filter((atMs) => atMs > nowMs);
    const own = await this.#orSearchLater(this.#parts.transactions.initsOf(leaseId));
    const isKnown = new Set([...before, ...known()]);
    for (const init of own) if (!isKnown.has(init.id)) this.add(init);
  }

  #orSearchLater<Result>(written: Promise<Result>): Promise<Result> {
    return written.catch((error: unknown) => {
      this.searchLater();
      throw error;
    });
  }

  async #endTaken(taken: Transaction, partnerOf: (id: PartnerId) => Promise<Partner | undefined>): Promise<void> {
    this.#commands.delete(taken.id);
    try {
      const partner = await partnerOf(taken.partnerId);
      if (partner === undefined) throw new Error(`There is no partner ${taken.partnerId}.`);
      if (taken.command === "REVERSAL") await this.#runner.reverse(partner, taken);
      else await this.end(partner, taken, taken.runBy as LeaseId);
    } catch (error) {
      this.add(taken);
      this.#parts.log.warn({ err: error, transaction: taken.id }, "a command in doubt could not be ended yet");
    }
  }
}
