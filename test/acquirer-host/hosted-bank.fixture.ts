import { setTimeout as pause } from "node:timers/promises";
import {
  type Acquirer,
  type AcquirerAnswer,
  type AcquirerMessage,
  type AskOptions,
  NoAnswer,
  NotSent,
} from "../../packages/server/src/acquirer/acquirer.ts";
import type { Behaviour, Rule } from "../../packages/server/src/acquirer/simulator/behaviour.ts";
import type { BankBooks, OtherBank, ScriptedLink } from "../../packages/server/src/ledger/ledger.fixture.ts";
import { connected, profile } from "./acquirer.fixture.ts";
import type { AcquirerHost } from "./host.ts";

/** The timeout of an answer that does not come in time. */
const hurriedMs = 60;
/** The host's late answer has come by then, or never comes. */
const lateWithinMs = 1_500;

/** The amounts of the model have up to twelve digits: dong without decimals, so that field 4 holds them. */
const wholeDong = {
  ...profile,
  currencies: { ...profile.currencies, VND: { number: "704", exponent: 0 } },
};
const currencyNumbers: Readonly<Record<string, string>> = { VND: "704", USD: "840" };

/** The books of the host on jPOS, for the ledger's model. */
export class HostedBank implements OtherBank {
  readonly #host: AcquirerHost;
  readonly #turns = new Map<string, Promise<unknown>>();
  #onTheirWay = 0;

  constructor(host: AcquirerHost) {
    this.#host = host;
  }

  async link(): Promise<ScriptedLink> {
    const acquirer = await connected([this.#host.port], { profile: wholeDong });
    return new HostedLink(acquirer, this);
  }

  /** Has the host treat a message to come. */
  async rule({ tid, traceNo }: AcquirerMessage, behaviour: string): Promise<void> {
    await this.#host.order(`rule ${tid} ${traceNo} ${behaviour}`);
  }

  /** The same message, which two instances may send at the same time here, is sent by one after the other. */
  inTurn<Result>({ command, tid, traceNo }: AcquirerMessage, run: () => Promise<Result>): Promise<Result> {
    const key = `${command} ${tid} ${traceNo}`;
    const turn = (this.#turns.get(key) ?? Promise.resolve()).then(run, run);
    this.#turns.set(key, turn);
    this.expect(turn);
    return turn;
  }

  /** It is busy until this has ended. */
  expect(ended: Promise<unknown>): void {
    this.#onTheirWay += 1;
    const left = () => {
      this.#onTheirWay -= 1;
    };
    ended.then(left, left);
  }

  isBusy(): boolean {
    return this.#onTheirWay > 0;
  }

  async books(idOf: (tid: string, traceNo: string) => string | undefined): Promise<BankBooks> {
    const bookings = (await this.#lines("books")).map((line) => {
      const [key = "", , , , state = ""] = line.split(" ");
      const [, traceNo = "", , tid = ""] = key.split("|");
      const transactionId = idOf(tid, traceNo) ?? `${tid} ${traceNo}`;
      return { tid, transactionId, state: state as ReturnType<BankBooks["all"]>[number]["state"] };
    });
    const batches = (await this.#lines("batches")).map((line) => line.split(" "));
    return {
      all: () => bookings,
      find: (id) => bookings.find(({ transactionId }) => transactionId === id),
      settledBatch(mid, tid, currency) {
        const found = batches.find(
          ([key, , number]) => key === `${mid}|${tid}` && number === currencyNumbers[currency],
        );
        if (found === undefined) return undefined;
        const [, batchNo = "", , sales, saleTotal, voids, voidTotal, refunds, refundTotal] = found;
        return {
          ...{ batchNo, currency },
          ...{ saleQuantity: Number(sales), saleTotalMinor: BigInt(saleTotal ?? 0) },
          ...{ voidQuantity: Number(voids), voidTotalMinor: BigInt(voidTotal ?? 0) },
          ...{ refundQuantity: Number(refunds), refundTotalMinor: BigInt(refundTotal ?? 0) },
        };
      },
    };
  }

  async #lines(order: "books" | "batches"): Promise<readonly string[]> {
    const [said = ""] = await this.#host.order(order);
    return said
      .slice(order.length + 1)
      .split(";")
      .filter((line) => line !== "");
  }
}

/** A link that loses and delays messages by itself, and has the host rule the others. */
class HostedLink implements ScriptedLink {
  readonly approvals: ReadonlySet<string>;
  readonly wantsCards: boolean;
  readonly reversalMarginMs: number | undefined;
  readonly #acquirer: Acquirer;
  readonly #bank: HostedBank;
  readonly #rules = new Set<Rule>();

  constructor(acquirer: Acquirer, bank: HostedBank) {
    this.approvals = acquirer.approvals;
    this.wantsCards = acquirer.wantsCards === true;
    this.reversalMarginMs = acquirer.reversalMarginMs;
    this.#acquirer = acquirer;
    this.#bank = bank;
  }

  behave(rule: Rule): () => void {
    this.#rules.add(rule);
    return () => this.#rules.delete(rule);
  }

  site(): string | undefined {
    return this.#acquirer.site?.();
  }

  refusesToken(token: string): string | undefined {
    return this.#acquirer.refusesToken(token);
  }

  close(): Promise<void> {
    return this.#acquirer.close();
  }

  ask(message: AcquirerMessage, options: AskOptions): Promise<AcquirerAnswer> {
    const behaviour = this.#ruled(message);
    return this.#bank.inTurn(message, () => this.#ask(message, options, behaviour));
  }

  async #ask(message: AcquirerMessage, options: AskOptions, behaviour?: Behaviour): Promise<AcquirerAnswer> {
    if (behaviour === undefined) return this.#acquirer.ask(message, options);
    const { answers = "now", declines, approves } = behaviour;
    if (answers === "not_sent") throw new NotSent("The message did not leave");
    if (answers === "lost" || answers === "delayed" || typeof answers === "object") {
      if (answers !== "lost") this.#bank.expect(this.#askLater(message, options));
      await pause(hurriedMs);
      throw new NoAnswer("The message was lost");
    }
    if (answers === "never" || answers === "late") {
      await this.#bank.rule(message, answers === "late" ? "late" : "timeout");
      return this.#askInAHurry(message, options, answers === "late");
    }
    if (declines !== undefined) await this.#bank.rule(message, `decline_${declines}`);
    else if (approves !== undefined) await this.#bank.rule(message, `approve_${approves}`);
    return this.#acquirer.ask(message, options);
  }

  #ruled(message: AcquirerMessage): Behaviour | undefined {
    for (const rule of this.#rules) {
      const behaviour = rule(message);
      if (behaviour !== undefined) return behaviour;
    }
    return undefined;
  }

  #askInAHurry(message: AcquirerMessage, options: AskOptions, isLate: boolean): Promise<AcquirerAnswer> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (isLate) this.#bank.expect(Promise.race([promise, pause(lateWithinMs)]));
    const onLateAnswer = (answer: AcquirerAnswer) => {
      options.onLateAnswer(answer);
      resolve();
    };
    return this.#acquirer.ask(message, { timeoutMs: hurriedMs, onLateAnswer });
  }

  /** It reaches the host behind whatever was sent meanwhile. */
  async #askLater(message: AcquirerMessage, options: AskOptions): Promise<void> {
    await pause(2 * hurriedMs);
    await this.#acquirer.ask(message, options).then(options.onLateAnswer, () => undefined);
  }
}
