import {
  type Acquirer,
  type AcquirerAnswer,
  type AcquirerMessage,
  type AskOptions,
  type AuthorisationMessage,
  NoAnswer,
  NotSent,
} from "../acquirer.ts";
import { Books } from "./books.ts";
import { approveCode, type Random, refId } from "./codes.ts";
import { approvalCodes, type Behaviour, testCard, testCards } from "./test-card.ts";

export interface SimulatorOptions {
  /** Before every answer, the link's way there and back. 0 (default) answers in a microtask, without a timer. */
  readonly latencyMs?: number;
  /** How long after the caller's time-out tok_late answers. Default 1,000. */
  readonly lateByMs?: number;
  /** Where approveCode and refId come from. Default Math.random. */
  readonly random?: Random;
  /** How many authorisations its books hold. Default 100,000. */
  readonly bookingsMax?: number;
}

/** An acquirer bank of our own, with books of its own, which behaves as the card's token says. */
export class SimulatedAcquirer implements Acquirer {
  readonly approvals = approvalCodes;
  readonly books: Books;
  readonly #latencyMs: number;
  readonly #lateByMs: number;
  readonly #random: Random;
  readonly #timers = new Set<NodeJS.Timeout>();
  /** What ends each caller's wait when the link is closed. */
  readonly #waiting = new Set<(reason: NoAnswer) => void>();
  #closed = false;

  constructor(options: SimulatorOptions = {}) {
    const { latencyMs = 0, lateByMs = 1_000, random = Math.random, bookingsMax = 100_000 } = options;
    this.books = new Books(bookingsMax);
    this.#latencyMs = latencyMs;
    this.#lateByMs = lateByMs;
    this.#random = random;
  }

  refusesToken(token: string): string | undefined {
    if (testCard(token) !== undefined) return undefined;
    return `The simulator knows the test cards ${testCards.map((card) => card.token).join(", ")} only.`;
  }

  async ask(message: AcquirerMessage, options: AskOptions): Promise<AcquirerAnswer> {
    if (this.#closed) throw new NotSent("The link to the acquirer is closed");
    if (message.command === "LOGON") return this.#answer(bareAnswer, this.#latencyMs, options);
    const behaviour = testCard(message.cardToken);
    if (behaviour === undefined) throw new NotSent("No such test card");
    if (this.books.find(message.transactionId) !== undefined) {
      return this.#answer(duplicateAnswer, this.#latencyMs, options);
    }
    this.#book(message, behaviour);
    return this.#answer(this.#answerOf(behaviour), this.#delayMs(behaviour, options.timeoutMs), options);
  }

  close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    for (const end of this.#waiting) end(new NoAnswer("The link to the acquirer was closed"));
    this.#waiting.clear();
    return Promise.resolve();
  }

  #book(message: AuthorisationMessage, { responseCode, approved }: Behaviour): void {
    const { cardToken: _, ...kept } = message;
    this.books.enter({ ...kept, responseCode, approved });
  }

  #answerOf({ responseCode, approved }: Behaviour): AcquirerAnswer {
    if (!approved) return { ...bareAnswer, responseCode };
    return { responseCode, approveCode: approveCode(this.#random), refId: refId(this.#random), tc: "" };
  }

  #delayMs({ answers }: Behaviour, timeoutMs: number): number {
    if (answers === "now") return this.#latencyMs;
    if (answers === "never") return Number.POSITIVE_INFINITY;
    if (answers === "late") return timeoutMs + this.#lateByMs;
    return answers.afterMs + this.#latencyMs;
  }

  #answer(answer: AcquirerAnswer, delayMs: number, options: AskOptions): Promise<AcquirerAnswer> {
    if (delayMs === 0) return Promise.resolve(answer);
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject);
      const inTime = delayMs < options.timeoutMs;
      this.#after(inTime ? delayMs : options.timeoutMs, () => {
        this.#waiting.delete(reject);
        if (inTime) return resolve(answer);
        reject(new NoAnswer(`The acquirer did not answer within ${options.timeoutMs} ms`));
        if (delayMs !== Number.POSITIVE_INFINITY) {
          this.#after(delayMs - options.timeoutMs, () => options.onLateAnswer(answer));
        }
      });
    });
  }

  #after(delayMs: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      act();
    }, delayMs);
    this.#timers.add(timer);
  }
}

/** With nothing but its code: a Logon has no reference, a decline no approval. */
const bareAnswer: AcquirerAnswer = { responseCode: "00", approveCode: "", refId: "", tc: "" };
/** ISO 8583: duplicate transmission. An authorisation is booked once, however often it arrives. */
const duplicateAnswer: AcquirerAnswer = { ...bareAnswer, responseCode: "94" };
