import {
  type Acquirer,
  type AcquirerAnswer,
  type AcquirerMessage,
  type AskOptions,
  NoAnswer,
  NotSent,
  OtherSite,
} from "../acquirer.ts";
import { SimulatedBank } from "./bank.ts";
import {
  type Answers,
  approvalCodes,
  type Behaviour,
  plainCard,
  type Rule,
  type TestCard,
  testCard,
  testCards,
  testTerminal,
} from "./behaviour.ts";

export interface SimulatorOptions {
  /** Before every answer, the link's way there and back. 0 (default) answers in a microtask, without a timer. */
  readonly latencyMs?: number;
  /** The delay of a late answer or message after the caller's timeout. Default 1,000. */
  readonly lateByMs?: number;
  /** The bank that it asks. Links that share one are several processes with one acquirer. Default: its own. */
  readonly bank?: SimulatedBank;
  /** The name of its host. All simulated banks have the same by default: none has a real card in its books. */
  readonly site?: string;
  /** Default 0. */
  readonly reversalMarginMs?: number;
}

/** Messages certainly do not leave; or the bank acts on them and the link breaks before its answer. */
type Outage = "not_sent" | "no_answer";

/**
 * A link to an acquirer bank of our own. The bank's books decide the result of a message; its treatment comes from (the
 * first that applies) an outage, a rule, a test terminal, the test card of its transaction or of the original.
 */
export class SimulatedAcquirer implements Acquirer {
  readonly approvals = approvalCodes;
  readonly bank: SimulatedBank;
  readonly reversalMarginMs: number;
  /** May be changed, as a link goes to another host of its acquirer. */
  host: string;
  readonly #latencyMs: number;
  readonly #lateByMs: number;
  readonly #answers = new DelayedAnswers();
  readonly #rules: Rule[] = [];
  #outage: Outage | undefined;
  #closed = false;

  constructor(options: SimulatorOptions = {}) {
    const { latencyMs = 0, lateByMs = 1_000, bank = new SimulatedBank(), site = "simulator" } = options;
    this.reversalMarginMs = options.reversalMarginMs ?? 0;
    this.bank = bank;
    this.host = site;
    this.#latencyMs = latencyMs;
    this.#lateByMs = lateByMs;
  }

  refusesToken(token: string): string | undefined {
    if (testCard(token) !== undefined) return undefined;
    return `The simulator knows the test cards ${testCards.map((card) => card.token).join(", ")} only.`;
  }

  site(): string {
    return this.host;
  }

  async ask(message: AcquirerMessage, options: AskOptions): Promise<AcquirerAnswer> {
    if (this.#closed) throw new NotSent("The link to the acquirer is closed");
    if (this.#outage === "not_sent") throw new NotSent("The link to the acquirer is down");
    const card = this.#cardOf(message);
    if (card === undefined) throw new NotSent("No such test card");
    const behaviour = this.#ruled(message) ?? testTerminal(message) ?? card.first;
    if (behaviour.answers === "not_sent") throw new NotSent("The message was not sent");
    const { host } = this;
    if (options.site !== undefined && options.site !== host) throw new OtherSite(host);
    const receive = () => {
      const answer = this.bank.receive(message, behaviour, card.followUps);
      const isAmbiguous = answer.approveCode !== "" && !this.approvals.has(answer.responseCode);
      return { ...withChipAnswer(message, answer), ...(isAmbiguous && { isAmbiguous }), site: host };
    };
    if (this.#outage === "no_answer") {
      receive();
      throw new NoAnswer("The link to the acquirer broke");
    }
    const { answers = "now" } = behaviour;
    if (typeof answers === "object" && "breaksAndArrivesAfterMs" in answers) {
      this.#answers.later(answers.breaksAndArrivesAfterMs, receive);
      throw new NoAnswer("The link to the acquirer broke");
    }
    const acted = answers === "delayed" || answers === "lost" ? undefined : receive();
    return this.#answers.answer(() => acted ?? receive(), this.#delayMs(answers, options.timeoutMs), options);
  }

  /**
   * Applies `rule` to messages from now on, before earlier rules; each sees only the messages that the others leave.
   * Returns what ends it.
   */
  behave(rule: Rule): () => void {
    this.#rules.unshift(rule);
    return () => {
      const at = this.#rules.indexOf(rule);
      if (at >= 0) this.#rules.splice(at, 1);
    };
  }

  /** Every message asked from now on fails so, until {@link restore}. */
  outage(kind: Outage): void {
    this.#outage = kind;
  }

  restore(): void {
    this.#outage = undefined;
  }

  close(): Promise<void> {
    this.#closed = true;
    this.#answers.close();
    return Promise.resolve();
  }

  #ruled(message: AcquirerMessage): Behaviour | undefined {
    for (const rule of this.#rules) {
      const behaviour = rule(message);
      if (behaviour !== undefined) return behaviour;
    }
    return undefined;
  }

  /** Undefined if the message has a token that is not a test card. */
  #cardOf(message: AcquirerMessage): TestCard | undefined {
    if (message.command === "SALE" || message.command === "PREAUTH") return testCard(message.cardToken);
    if (message.command === "REVERSAL" || !("original" in message)) return plainCard;
    const followUps = this.bank.followUpsOf(message.original.transactionId);
    return followUps === undefined ? plainCard : { first: followUps, followUps };
  }

  #delayMs(answers: Exclude<Answers, { breaksAndArrivesAfterMs: number }>, timeoutMs: number): number {
    if (answers === "now") return this.#latencyMs;
    if (answers === "late" || answers === "delayed") return timeoutMs + this.#lateByMs;
    if (answers === "never" || answers === "lost" || answers === "not_sent") return Number.POSITIVE_INFINITY;
    return answers.afterMs + this.#latencyMs;
  }
}

/** As issuers answer a chip: tag 8A, the response code in ASCII. This bank knows no card's key, and sends no ARPC. */
function withChipAnswer(message: AcquirerMessage, answer: AcquirerAnswer): AcquirerAnswer {
  const hasChip = "emv" in message && message.emv !== undefined && message.emv !== "";
  if (!hasChip) return answer;
  return { ...answer, emv: `8A02${Buffer.from(answer.responseCode).toString("hex").toUpperCase()}` };
}

/** The questions that are on their way, each with its answer's time. */
class DelayedAnswers {
  readonly #timers = new Set<NodeJS.Timeout>();
  /** Ends each caller's wait when the link is closed. */
  readonly #waiting = new Set<(reason: NoAnswer) => void>();

  /**
   * Resolves to the answer, obtained `delayMs` from now, or rejects when the caller's time is over first; then the
   * answer goes to `onLateAnswer`. Without a delay no timer is set: throughput is measured through here.
   */
  answer(obtain: () => AcquirerAnswer, delayMs: number, options: AskOptions): Promise<AcquirerAnswer> {
    if (delayMs === 0) return Promise.resolve(obtain());
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject);
      const inTime = delayMs < options.timeoutMs;
      this.#after(inTime ? delayMs : options.timeoutMs, () => {
        this.#waiting.delete(reject);
        if (inTime) return resolve(obtain());
        reject(new NoAnswer(`The acquirer did not answer within ${options.timeoutMs} ms`));
        if (delayMs !== Number.POSITIVE_INFINITY) {
          this.#after(delayMs - options.timeoutMs, () => options.onLateAnswer(obtain()));
        }
      });
    });
  }

  /** Acts later, unless the link is closed before. */
  later(delayMs: number, act: () => void): void {
    this.#after(delayMs, act);
  }

  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    for (const end of this.#waiting) end(new NoAnswer("The link to the acquirer was closed"));
    this.#waiting.clear();
  }

  #after(delayMs: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      act();
    }, delayMs);
    this.#timers.add(timer);
  }
}
