import { createSecretKey } from "node:crypto";
import { afterAll, expect, onTestFinished } from "vitest";
import { connectionsTo } from "../../../../test/support/connections.ts";
import { createDatabase, type TestDatabase } from "../../../../test/support/database.ts";
import {
  type Acquirer,
  type AcquirerMessage,
  type Acquirers,
  type AskOptions,
  noAcquirer,
} from "../acquirer/acquirer.ts";
import { type BookingView, SimulatedBank } from "../acquirer/simulator/bank.ts";
import { next } from "../acquirer/simulator/behaviour.ts";
import { SimulatedAcquirer } from "../acquirer/simulator/simulator.ts";
import type { Clock } from "../clock.ts";
import type { CommandRequest } from "../commands/requests/request.ts";
import { type LeaseId, newId, type PartnerId, type TransactionId } from "../ids.ts";
import type { IpnFacts } from "../ipn/facts.ts";
import { partnerSnapshot } from "../partners/partner.fixture.ts";
import type { Partner, PartnerSettings } from "../partners/partner.ts";
import type { Database } from "../store/database/database.ts";
import { postgresReversals } from "../store/reversals/reversals.ts";
import { createHistory, insertLease } from "../store/rows.fixture.ts";
import { postgresSettlements } from "../store/settlements/settlements.ts";
import { postgresTerminals } from "../store/terminals/terminals.ts";
import { postgresCards } from "../store/transactions/cards.ts";
import { PostgresCompletions } from "../store/transactions/completions.ts";
import { postgresDueKinds } from "../store/transactions/due.ts";
import { PostgresTransactions } from "../store/transactions/transactions.ts";
import type { NewEvent } from "../telemetry/events.ts";
import { createLog } from "../telemetry/log.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { Completer } from "./completer.ts";
import { DueWatch } from "./due-work.ts";
import { CardVault } from "./exchange/card-vault.ts";
import { TerminalAcquirers } from "./exchange/terminal-acquirers.ts";
import { type CommandAnswer, Ledger } from "./ledger.ts";
import { type CrashPoint, InstanceLife } from "./life.fixture.ts";
import type { NewNotification } from "./notifier.ts";
import { Reverser } from "./reversals/reverser.ts";
import { Settler } from "./settlements/settler.ts";
import type { SettlementStore } from "./settlements/store.ts";
import type { Transaction } from "./store.ts";

/** A link whose treatment of a message can be ruled. */
export type ScriptedLink = Acquirer & Pick<SimulatedAcquirer, "behave">;

/** The books of a bank, with which an audit compares the ledger. */
export type BankBooks = Pick<SimulatedBank, "settledBatch"> & {
  all(): readonly Pick<BookingView, "tid" | "transactionId" | "state">[];
  find(transactionId: string): Pick<BookingView, "state"> | undefined;
};

/** A bank elsewhere, in place of the strict one. */
export interface OtherBank {
  /** A link of a new process, which can be asked. */
  link(): Promise<ScriptedLink>;
  /** @param idOf the transaction whose message had this trace number */
  books(idOf: (tid: string, traceNo: string) => string | undefined): Promise<BankBooks>;
  /** A message, or an answer, is on its way. */
  isBusy(): boolean;
}

export interface LedgerBenchOptions {
  readonly otherBank?: OtherBank | undefined;
  readonly acquirerTimeoutMs?: number;
  /** The delay of late answers after the timeout. */
  readonly lateByMs?: number;
  /** Beyond the time-out, for which a message may still be booked. Default 0. */
  readonly reversalMarginMs?: number;
  /** The acquirer wants cards in follow-up messages. */
  readonly wantsCards?: boolean;
  /**
   * Work that is due later is found by the clock, as in the service. Default false: only when something else makes the
   * instance look, such as {@link LedgerBench.runDueNow}, so that a slow test finds each try as it was left.
   */
  readonly watchesDue?: boolean;
}

type OpenOptions = Required<Omit<LedgerBenchOptions, "otherBank">> & Pick<LedgerBenchOptions, "otherBank">;

/** One PostgreSQL, one strict bank, and any number of ledger instances. */
export class LedgerBench {
  readonly bank = new SimulatedBank({ strict: true, bookingsMax: 200_000 });
  readonly instances: LedgerInstance[] = [];
  readonly clock: Clock = { nowMs: () => Date.now() + this.aheadMs, monotonicMs: () => performance.now() };
  /** The offset of the ledger's clock. */
  aheadMs = 0;
  /** Of each Reversal that is due again: how often it was tried. */
  readonly postponed = new Map<TransactionId, number>();
  /** Awaited by every message before it is sent, and by every answer before it arrives. */
  onLink: ((what: string) => Promise<unknown>) | undefined;
  #letGo: () => void = () => undefined;
  readonly database: TestDatabase;
  readonly connections: Database;
  readonly options: OpenOptions;

  static async open(options: LedgerBenchOptions = {}): Promise<LedgerBench> {
    const database = await createDatabase();
    const connections = connectionsTo(database.url, 24);
    await createHistory(connections.pool);
    return new LedgerBench(database, connections, {
      acquirerTimeoutMs: 200,
      lateByMs: 50,
      reversalMarginMs: 0,
      wantsCards: false,
      watchesDue: false,
      otherBank: undefined,
      ...options,
    });
  }

  /** One for the tests of a file, with an instance and a partner. */
  static async ofFile(options: LedgerBenchOptions = {}, settings: Partial<PartnerSettings> = {}) {
    const bench = await LedgerBench.open(options);
    afterAll(() => bench.close());
    return { bench, instance: await bench.start(), partner: await bench.partner(settings) };
  }

  private constructor(database: TestDatabase, connections: Database, options: OpenOptions) {
    this.database = database;
    this.connections = connections;
    this.options = options;
  }

  /** Starts a new process. It has its own lease, or the `held` one of another. */
  async start(held?: LeaseId): Promise<LedgerInstance> {
    const link = await this.options.otherBank?.link();
    const instance = new LedgerInstance(this, held ?? (await insertLease(this.connections.pool)), link);
    this.instances.push(instance);
    return instance;
  }

  async partner(settings: Partial<PartnerSettings> = {}): Promise<Partner> {
    const partner = partnerSnapshot({ callBackUrl: "https://partner.example/ipn", ...settings });
    await this.query("INSERT INTO partners (id, state, settings) VALUES ($1, 'active', '{}')", [partner.id]);
    return partner;
  }

  /** The committed IPN facts of a transaction, in commit order. */
  async ipnsOf(id: TransactionId): Promise<IpnFacts[]> {
    const rows = await this.query<{ content: IpnFacts }>(
      "SELECT content FROM notifications WHERE transaction_id = $1 ORDER BY xid, id",
      [id],
    );
    return rows.map(({ content }) => content);
  }

  /** Holds what passes the link under this name, until the test lets it go, or closes the bench. */
  holdLink(name: string): { readonly reached: Promise<void>; go(): void } {
    const [reached, gone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    this.onLink = async (what) => {
      if (what !== name) return;
      reached.resolve();
      await gone.promise;
    };
    const go = () => {
      this.onLink = undefined;
      gone.resolve();
    };
    this.#letGo = go;
    return { reached: reached.promise, go };
  }

  /** Calls this for what passes the link, until the test has finished. */
  watchLink(onLink: (what: string) => Promise<unknown>): void {
    this.onLink = onLink;
    onTestFinished(() => {
      this.onLink = undefined;
    });
  }

  /** Makes everything due now. */
  async runDueNow(): Promise<void> {
    await this.query("UPDATE reversals SET due_at = now() WHERE state = 'PENDING'");
    await this.query("UPDATE settlements SET due_at = now()");
    // Nothing is on its way to a real host, so the time until which it could arrive need not pass.
    if (this.options.otherBank?.isBusy() === false) {
      await this.query("UPDATE reversals SET left_by = left_by - interval '1 hour' WHERE state = 'PENDING'");
    }
    for (const { life, reverser, settler } of this.instances) {
      if (!life.lives) continue;
      reverser.wake();
      settler.wake();
    }
  }

  /**
   * For `expect.poll`: reads it after what is due was run. Each run has twice as long as the one before, because the next
   * one claims what is under way again, and so ends it: a slow machine would never get through.
   */
  afterDue<Read>(read: () => Promise<Read>): () => Promise<Read> {
    let [againAtMs, waitMs] = [0, 50];
    return async () => {
      const nowMs = performance.now();
      if (nowMs >= againAtMs) {
        [againAtMs, waitMs] = [nowMs + waitMs, waitMs * 2];
        await this.runDueNow();
      }
      return await read();
    };
  }

  /** Deletes a lease, and waits until the others have noticed. */
  async dropLease(id: LeaseId): Promise<void> {
    await this.query("DELETE FROM leases WHERE id = $1", [id]);
  }

  async query<Row extends object>(text: string, values: unknown[] = []): Promise<Row[]> {
    return (await this.connections.pool.query<Row>(text, values)).rows;
  }

  async reversalOf(id: TransactionId): Promise<{ state: string; tries: number; code: string | null } | undefined> {
    const rows = await this.query<{ state: string; tries: number; code: string | null }>(
      "SELECT state, tries, response_code AS code FROM reversals WHERE transaction_id = $1",
      [id],
    );
    return rows[0];
  }

  /**
   * Resolves once this try has ended without an end of the Reversal: it may be made due now. Before, the try would
   * postpone it afterwards, and nothing would try again.
   */
  async tried(id: TransactionId, tries: number): Promise<void> {
    await expect.poll(() => this.postponed.get(id), { interval: 5 }).toBe(tries);
  }

  async reversed(id: TransactionId, code: "00" | "25" = "00"): Promise<void> {
    const isUnknown = code === "25";
    // A 25 is provisional first: its original may have left only a moment ago.
    const longAgo = "UPDATE reversals SET left_by = left_by - interval '1 hour' WHERE transaction_id = $1";
    if (isUnknown) await this.query(longAgo, [id]);
    const reversal = () => this.reversalOf(id);
    await expect.poll(isUnknown ? this.afterDue(reversal) : reversal).toMatchObject({ state: "DONE", code });
  }

  /** Resolves once no command, Reversal or settlement of the partner is running. */
  async quiet({ id }: Partner): Promise<void> {
    const busy = async () => {
      const rows = await this.query<{ what: string }>(
        `SELECT command || ' ' || id AS what FROM transactions WHERE partner_id = $1 AND state = 'INIT'
         UNION ALL SELECT 'Reversal of ' || transaction_id FROM reversals WHERE partner_id = $1 AND state = 'PENDING'
         UNION ALL SELECT 'settlement ' || id FROM settlements WHERE partner_id = $1`,
        [id],
      );
      if (rows.length > 0) await this.runDueNow();
      const late = this.options.otherBank?.isBusy() === true ? ["something that comes late"] : [];
      return [...rows.map(({ what }) => what), ...late];
    };
    await expect.poll(busy, { interval: 20 }).toEqual([]);
  }

  async close(): Promise<void> {
    this.#letGo();
    await Promise.all(this.instances.map((instance) => instance.close()));
    await this.connections.close();
    await this.database.drop();
  }
}

/** A message to the acquirer, and what a late answer to it calls. */
type Asked = Pick<AskOptions, "onLateAnswer"> & { readonly message: AcquirerMessage };

/** The real parts of one process, wired as in the service. Notifications that it passes on are recorded. */
export class LedgerInstance {
  readonly life = new InstanceLife();
  /** The acquirer of the settings; the others are registered, by name. */
  readonly acquirer: SimulatedAcquirer;
  readonly others = new Map<string, SimulatedAcquirer>();
  readonly acquirers: Acquirers;
  /** The link for its commands: to the acquirer above, unless the bench has another bank. */
  readonly link: ScriptedLink;
  readonly ledger: Ledger;
  readonly reverser: Reverser;
  readonly settler: Settler;
  readonly settlements: SettlementStore;
  readonly events: NewEvent[] = [];
  readonly passedOn: NewNotification[] = [];
  readonly logged: string[] = [];
  leaseId: LeaseId;
  /** For so long that it does not rely on its lease before a beat was answered. */
  hasStoodStill = false;
  readonly #bench: LedgerBench;
  readonly #metrics = createMetrics();
  readonly #dueWatch: DueWatch;
  readonly #waiting = new Set<() => void>();
  readonly #lastAsked = new Map<string, Asked>();

  constructor(bench: LedgerBench, leaseId: LeaseId, link?: ScriptedLink) {
    this.#bench = bench;
    this.leaseId = leaseId;
    const { connections, clock, options } = bench;
    const { acquirerTimeoutMs, lateByMs, reversalMarginMs: marginMs } = options;
    const { life } = this;
    this.acquirer = new SimulatedAcquirer({ bank: bench.bank, lateByMs, reversalMarginMs: marginMs });
    this.link = link ?? this.acquirer;
    const lease = {
      current: () => (life.lives && !this.hasStoodStill ? this.leaseId : undefined),
      isHeld: async (id: LeaseId) => {
        this.hasStoodStill = false;
        return lease.current() === id;
      },
    };
    const log = createLog("debug", { write: (line: string) => void this.logged.push(line) });
    const transactions = life.of(new PostgresTransactions(connections));
    const completions = life.of(new PostgresCompletions(connections.homes));
    const reversals = life.of(postgresReversals(connections.homes));
    const settlements = life.of<SettlementStore>(postgresSettlements(connections.homes));
    this.settlements = settlements;
    const { approvals, wantsCards = options.wantsCards, reversalMarginMs } = this.link;
    const acquirer = life.of<Acquirer>({
      approvals,
      wantsCards,
      ...(reversalMarginMs !== undefined && { reversalMarginMs }),
      site: () => this.link.site?.(),
      refusesToken: (token) => this.link.refusesToken(token),
      close: () => this.link.close(),
      ask: async (message, how) => {
        this.#lastAsked.set(message.command, { message, ...how });
        await bench.onLink?.(`a ${message.command} leaves`);
        const answer = await this.link.ask(message, how);
        await bench.onLink?.(`the answer to a ${message.command} arrives`);
        return answer;
      },
    });
    const acquirers: Acquirers = {
      of: (name) => (name === "" ? acquirer : (this.others.get(name) ?? noAcquirer)),
      has: (name) => name === "" || this.others.has(name),
      names: () => ["", ...this.others.keys()],
    };
    this.acquirers = acquirers;
    const notifier = { notify: (notification: NewNotification) => void this.passedOn.push(notification) };
    const events = life.of({ record: (event: NewEvent) => this.#record(event) });
    const completer = new Completer({
      directory: { cached: () => undefined },
      completions,
      notifier,
      events,
      metrics: this.#metrics,
    });
    const key = createSecretKey(Buffer.alloc(32, 8));
    const cards = new CardVault({ cards: postgresCards(connections.homes), acquirers, key, log });
    const shared = { transactions, completer, acquirers, cards, log, acquirerTimeoutMs };
    this.reverser = new Reverser({
      ...shared,
      reversals: {
        claimDue: (...how) => reversals.claimDue(...how),
        end: (...how) => reversals.end(...how),
        noteUnknown: (...how) => reversals.noteUnknown(...how),
        async postpone(due, ...how) {
          await reversals.postpone(due, ...how);
          bench.postponed.set(due.transactionId, due.tries);
        },
      },
    });
    this.settler = new Settler({ ...shared, settlements });
    const { reverser, settler } = this;
    this.ledger = new Ledger({
      ...shared,
      reversals,
      reverser,
      settler,
      terminals: new TerminalAcquirers(postgresTerminals(connections.homes), acquirers),
      lease,
      clock,
      metrics: this.#metrics,
      bodyKey: createSecretKey(Buffer.alloc(32, 7)),
      preAuthDays: 30,
      claimsMax: 10_000,
      commandsMax: 1_000,
      sandbox: true,
      isRegisteredDevice: () => Promise.resolve(false),
    });
    this.reverser.start();
    this.settler.start();
    const nothing = () => undefined;
    this.#dueWatch = new DueWatch({
      store: life.of(postgresDueKinds(connections.homes)),
      log,
      wake: {
        commands: nothing,
        reversals: () => reverser.wake(),
        settlements: () => settler.wake(),
        comparisons: nothing,
        reports: nothing,
      },
    });
    if (options.watchesDue) this.#dueWatch.start();
  }

  run(partner: Partner, request: CommandRequest, respondAsync = false): Promise<CommandAnswer> {
    return this.ledger.run(partner, request, { respondAsync });
  }

  /** Resolves with the outcome of the command. */
  async ended(partner: Partner, request: CommandRequest): Promise<Transaction> {
    const { transaction, done } = await this.run(partner, request);
    return done ? transaction : this.endOf(transaction);
  }

  /** Resolves with the command while it is still running. */
  async begun(partner: Partner, request: CommandRequest): Promise<Transaction> {
    return (await this.run(partner, request, true)).transaction;
  }

  async find(partner: { readonly id: PartnerId }, id: TransactionId): Promise<Transaction> {
    const found = await this.ledger.find(partner.id, id);
    if (found === undefined) throw new Error(`there is no transaction ${id}`);
    return found;
  }

  /** Resolves with the transaction once it is no longer INIT. */
  async endOf({ partnerId, id }: Pick<Transaction, "partnerId" | "id">): Promise<Transaction> {
    const state = async () => (await this.find({ id: partnerId }, id)).state;
    await expect.poll(state, { interval: 5 }).not.toBe("INIT");
    return this.find({ id: partnerId }, id);
  }

  /** Sets the behaviour for the next message of a command. */
  nextFares(...rule: Parameters<typeof next>): void {
    this.acquirer.behave(next(...rule));
  }

  lastAsked(command: AcquirerMessage["command"]): Asked {
    const asked = this.#lastAsked.get(command);
    if (asked === undefined) throw new Error(`no ${command} was sent to the acquirer`);
    return asked;
  }

  takeOver(partner: Partner): Promise<number> {
    return this.ledger.takeOver((id) => Promise.resolve(id === partner.id ? partner : undefined));
  }

  /** Resolves once an event of this kind is recorded. */
  async eventOf(kind: NewEvent["kind"], subjectId: string): Promise<NewEvent> {
    for (;;) {
      const event = this.events.find((one) => one.kind === kind && one.subjectId === subjectId);
      if (event !== undefined) return event;
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  /** The process was paused: others have declared its lease dead, and it goes on with another. */
  async losesLease(): Promise<void> {
    const lost = this.leaseId;
    this.leaseId = await insertLease(this.#bench.connections.pool);
    await this.#bench.dropLease(lost);
  }

  /** Ends the process: it does nothing more, and its lease is deleted. */
  async crash(): Promise<void> {
    this.life.end();
    await this.#bury();
  }

  /** Resolves when the process has crashed at this point. Await it after starting the work that leads there. */
  async crashesAt(death: CrashPoint): Promise<void> {
    await this.life.endsAt(death);
    await this.#bury();
  }

  async close(): Promise<void> {
    const { lives } = this.life;
    if (lives) await this.ledger.stop();
    this.#dueWatch.stop();
    const stopped = [this.reverser.stop(), this.settler.stop()];
    if (lives) await Promise.all(stopped);
    await this.link.close();
    this.life.end();
    this.#metrics.close();
  }

  async #bury(): Promise<void> {
    void this.reverser.stop();
    void this.settler.stop();
    await this.#bench.dropLease(this.leaseId);
  }

  #record(event: NewEvent): void {
    this.events.push({ ...event, detail: { ...event.detail } });
    for (const look of this.#waiting) look();
    this.#waiting.clear();
  }
}

let terminals = 0;

/** Sends requests for one terminal. Every request has its own reqId. */
export class LedgerTill {
  readonly tid: string;
  readonly mid = "M00000000000001";

  constructor() {
    terminals += 1;
    this.tid = `T${String(terminals).padStart(7, "0")}`;
  }

  sale(token = "tok_approve", amount = "150000", currency = "VND") {
    return { command: "SALE", ...this.#charge(token, amount, currency) } as const;
  }

  preAuth(token = "tok_approve", amount = "150000", currency = "VND") {
    return { command: "PREAUTH", ...this.#charge(token, amount, currency) } as const;
  }

  complete(preAuth: { readonly id: TransactionId }, amount = "150000") {
    return { command: "PREAUTH_COMPLETE", reqId: newReqId(), transactionId: preAuth.id, amount } as const;
  }

  refund(original: { readonly id: TransactionId }, amount = "150000") {
    return { command: "REFUND", reqId: newReqId(), transactionId: original.id, amount } as const;
  }

  void(original: { readonly id: TransactionId }) {
    return { command: "VOID", reqId: newReqId(), transactionId: original.id } as const;
  }

  reversal(original: { readonly id: TransactionId }) {
    return { command: "REVERSAL", reqId: newReqId(), transactionId: original.id } as const;
  }

  reversalOf(originalReqId: string) {
    return { command: "REVERSAL", reqId: newReqId(), originalReqId } as const;
  }

  settlement() {
    return { command: "SETTLEMENT", reqId: newReqId(), tid: this.tid, mid: this.mid } as const;
  }

  batchUpload() {
    return { command: "BATCH_UPLOAD", reqId: newReqId(), tid: this.tid, mid: this.mid } as const;
  }

  logon() {
    return { command: "LOGON", reqId: newReqId(), tid: this.tid, mid: this.mid } as const;
  }

  #charge(token: string, amount: string, currency: string) {
    const { tid, mid } = this;
    const card = { token, number: "411111******1111", swipeType: "C", aid: "A0000000031010" };
    return { reqId: newReqId(), amount, currency, tid, mid, merchantTransId: `order-${newId().slice(-12)}`, card };
  }
}

function newReqId(): string {
  return crypto.randomUUID();
}

/** Books a Sale at the bank that the ledger does not know: their totals differ from then on. */
export function bookUnmatched({ bank }: LedgerBench, { tid, mid }: LedgerTill, batchNo = "000001"): void {
  bank.receive({
    command: "SALE",
    transactionId: newId(),
    traceNo: "900001",
    invoiceNo: "900001",
    tid,
    mid,
    batchNo,
    repeat: false,
    atMs: 0,
    cardToken: "tok_approve",
    swipeType: "C",
    expDate: "",
    amountMinor: 1n,
    currency: "VND",
  });
}

/** A field of the IPN, by its name in the table. */
export function field({ facts }: Pick<Transaction, "facts">, name: string): string | undefined {
  return facts.fields[name];
}
