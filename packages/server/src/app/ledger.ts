import type { OpenAcquirers } from "../acquirer/registered/open-acquirers.ts";
import { systemClock } from "../clock.ts";
import type { Lease } from "../leases/lease.ts";
import { Completer } from "../ledger/completer.ts";
import { DueWatch } from "../ledger/due-work.ts";
import { CardVault } from "../ledger/exchange/card-vault.ts";
import { TerminalAcquirers } from "../ledger/exchange/terminal-acquirers.ts";
import { UnmatchedAnswers } from "../ledger/exchange/unmatched-answers.ts";
import { Ledger } from "../ledger/ledger.ts";
import { MoneyOperations } from "../ledger/money-operations.ts";
import { Comparer } from "../ledger/reports/comparer.ts";
import { Reports } from "../ledger/reports/reports.ts";
import { WaitingReports } from "../ledger/reports/waiting-reports.ts";
import { Reverser, type ReverserParts } from "../ledger/reversals/reverser.ts";
import { Settler } from "../ledger/settlements/settler.ts";
import type { LongPolls } from "../notifications/long-polls.ts";
import { postgresReversals } from "../store/reversals/reversals.ts";
import { postgresComparisons } from "../store/settlements/comparisons.ts";
import { postgresSettlements } from "../store/settlements/settlements.ts";
import { postgresCards, sweepCards } from "../store/transactions/cards.ts";
import { PostgresCompletions } from "../store/transactions/completions.ts";
import { postgresDueKinds, postgresWaitingReports } from "../store/transactions/due.ts";
import { postgresMoney } from "../store/transactions/search.ts";
import { PostgresTransactions } from "../store/transactions/transactions.ts";
import { type DeliveryParts, deliveryNotifier } from "./delivery.ts";
import type { Infrastructure } from "./infrastructure.ts";
import type { PartnerParts } from "./partners.ts";

export interface LedgerOptions {
  readonly acquirers: OpenAcquirers;
  readonly lease: Lease;
  readonly arrivals: LongPolls;
  readonly onReversalEnded: ReverserParts["onEnded"];
}

/** Commands wait in memory while an acquirer hangs: 4,000 are 130 a second, each until the time-out of 30 s. */
const commandsMax = 4_000;

/** Wires the ledger: commands and reports, and passing their notifications to delivery. */
export function wireLedger(
  { database, config, log, metrics, alerting, alerts, tracing, sandbox, closing, warn, watch }: Infrastructure,
  { directory, terminals, isRegisteredDevice, bodyKey, cardKey, contents }: PartnerParts,
  { hints, backpressure }: DeliveryParts,
  { acquirers: opened, lease, arrivals, onReversalEnded: onEnded }: LedgerOptions,
) {
  const turn = () => backpressure.waitForTurn();
  const traces = tracing?.traces;
  const acquirers = tracing === undefined ? opened : tracing.acquirers(opened);
  const notifier = deliveryNotifier(hints, arrivals, traces);
  const transactions = new PostgresTransactions(database, { ...watch("inits"), turn });
  const completions = new PostgresCompletions(database.homes, {
    ...watch("completions"),
    turn,
    macOf: (notification) => contents.of(notification),
  });
  const completer = new Completer({ completions, notifier, directory, events: alerts, metrics });
  const reversals = postgresReversals(database.homes, { alerting });
  const { acquirerTimeoutMs, preAuthDays } = config;
  const cardStore = postgresCards(database.homes);
  const cards = new CardVault({ cards: cardStore, acquirers, key: cardKey, log });
  const shared = { transactions, completer, acquirers, cards, log, acquirerTimeoutMs };
  const reverser = new Reverser({ ...shared, reversals, onEnded });
  const settlements = postgresSettlements(database.homes);
  const settler = new Settler({ ...shared, settlements });
  const ledger = new Ledger({
    ...shared,
    reversals,
    reverser,
    settler,
    terminals: new TerminalAcquirers(terminals, acquirers),
    lease,
    clock: systemClock,
    metrics,
    bodyKey,
    preAuthDays,
    commandsMax,
    sandbox,
    claimsMax: config.openTerminalsMax,
    isRegisteredDevice,
    traceCommand: traces && ((begun, run) => traces.command(begun, run)),
  });
  const unmatched = new UnmatchedAnswers({
    store: reversals,
    transactions,
    acquirers,
    ledger,
    lateSettlements: settler.late,
    events: alerts,
    log,
  });
  opened.onUnmatchedAnswer((name, answer) => void unmatched.handle(name, answer));
  const reports = new Reports({
    transactions,
    completions,
    directory,
    notifier,
    events: alerts,
    metrics,
    sandbox,
    isRegisteredDevice,
  });
  const comparer = new Comparer({ comparisons: postgresComparisons(database.homes), directory, metrics, log });
  const waiting = postgresWaitingReports(database.homes);
  const waitingReports = new WaitingReports({ waiting, transactions, completions, directory, notifier, metrics, log });
  const money = new MoneyOperations({
    store: postgresMoney(database.homes),
    reversals,
    reverser,
    settler,
    settlements,
    events: alerts,
  });
  const takeOver = () => {
    ledger.takeOver((id) => directory.find(id)).catch(warn("commands in doubt could not be taken over"));
  };
  const dueWatch = new DueWatch({
    store: postgresDueKinds(database.homes),
    log,
    wake: {
      commands: takeOver,
      reversals: () => reverser.wake(),
      settlements: () => settler.wake(),
      comparisons: () => comparer.wake(),
      reports: () => waitingReports.wake(),
    },
  });
  closing.push(() => dueWatch.stop());
  const workers = [reverser, settler, comparer, waitingReports];
  const sweep = () => sweepCards(database.homes, preAuthDays);
  return { ledger, reports, workers, dueWatch, money, sweepCards: sweep, unmatched };
}
