import { randomUUID } from "node:crypto";
import { type AcquirerAnswer, type AcquirerMessage, type AskOptions, NoAnswer, NotSent } from "../acquirer.ts";

export interface PostParts {
  /** Tells a text to all instances, this one too. */
  readonly tell: (text: string) => Promise<unknown>;
  /** Under a key that all instances have: a message may hold a card's token, a track or a PIN block. */
  readonly seal: (plain: Buffer) => Buffer;
  readonly open: (sealed: Buffer) => Buffer;
  readonly onTrouble: (error: unknown) => void;
}

/** Carries out what another instance asks. */
export type Carry = (message: AcquirerMessage, timeoutMs: number) => Promise<AcquirerAnswer>;

interface Ask {
  readonly kind: "ask";
  readonly id: string;
  readonly from: string;
  readonly acquirer: string;
  readonly message: AcquirerMessage;
  readonly timeoutMs: number;
}

interface Reply {
  readonly kind: "reply";
  readonly id: string;
  readonly answer?: AcquirerAnswer;
  /** In the place of an answer: whether the message certainly did not leave, and why there is none. */
  readonly notSent?: boolean;
  readonly why?: string;
}

interface Waiting {
  readonly settle: (reply: Reply) => void;
}

/** PostgreSQL's NOTIFY takes no longer text. */
const textBytesMax = 7_999;
/** For how long, and for how many, an answer that comes after its time-out is still passed on. */
const lateForMs = 600_000;
const lateMax = 10_000;

/**
 * Messages between instances: one asks, the addressed one runs the request and replies. A message may be lost when a
 * connection breaks, and is never duplicated: then there is no answer, and the command is in doubt.
 */
export class SessionPost {
  /** This process, to which replies are addressed. */
  readonly #self = randomUUID();
  readonly #parts: PostParts;
  readonly #waiting = new Map<string, Waiting>();
  readonly #carriers = new Map<string, Carry>();
  readonly #addresses = new Set<string>([this.#self]);

  constructor(parts: PostParts) {
    this.#parts = parts;
  }

  /** Carries out what is asked of this acquirer and addressed to `address`. @returns what ends that */
  serve(acquirer: string, address: string, carry: Carry): () => void {
    this.#addresses.add(address);
    this.#carriers.set(`${address} ${acquirer}`, carry);
    return () => {
      this.#carriers.delete(`${address} ${acquirer}`);
    };
  }

  /** Asks another instance. Equivalent to {@link Acquirer.ask}. */
  ask(to: string, acquirer: string, message: AcquirerMessage, options: AskOptions): Promise<AcquirerAnswer> {
    const id = randomUUID();
    const { timeoutMs, onLateAnswer } = options;
    const text = this.#textOf(to, { kind: "ask", id, from: this.#self, acquirer, message, timeoutMs });
    if (text.length > textBytesMax) {
      return Promise.reject(new NotSent("The message is too long to be passed on to the instance with the session"));
    }
    const { promise, resolve, reject } = Promise.withResolvers<AcquirerAnswer>();
    const giveUp = (why: string) => {
      reject(new NoAnswer(why));
      this.#expectLate(id, onLateAnswer);
    };
    const timer = setTimeout(() => giveUp(`No answer was passed on within ${timeoutMs} ms`), timeoutMs);
    this.#waiting.set(id, {
      settle: ({ answer, notSent, why = "" }) => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        if (answer !== undefined) resolve(answer);
        else reject(notSent === true ? new NotSent(why) : new NoAnswer(why));
      },
    });
    this.#parts.tell(text).catch((error: unknown) => {
      clearTimeout(timer);
      this.#parts.onTrouble(error);
      // It may have been told all the same.
      giveUp("The instance with the session could not be asked");
    });
    return promise;
  }

  /** A message was received. */
  heard(text: string): void {
    const [, to = "", sealed = ""] = /^([0-9a-f-]{36}) (.+)$/.exec(text) ?? [];
    if (!this.#addresses.has(to)) return;
    try {
      const told = JSON.parse(this.#parts.open(Buffer.from(sealed, "base64")).toString(), revived) as Ask | Reply;
      if (told.kind === "reply") this.#waiting.get(told.id)?.settle(told);
      else void this.#carryOut(to, told);
    } catch (error) {
      this.#parts.onTrouble(error);
    }
  }

  /** Nobody waits any longer. */
  close(): void {
    for (const { settle } of [...this.#waiting.values()]) settle({ kind: "reply", id: "", why: "The link was closed" });
    this.#carriers.clear();
  }

  async #carryOut(to: string, { id, from, acquirer, message, timeoutMs }: Ask): Promise<void> {
    const reply = (content: Omit<Reply, "kind" | "id">) => this.#reply(from, { kind: "reply", id, ...content });
    const carry = this.#carriers.get(`${to} ${acquirer}`);
    if (carry === undefined)
      return reply({ notSent: true, why: "The instance that was asked has no session any more" });
    try {
      await reply({ answer: await carry(message, timeoutMs) });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      await reply({ notSent: error instanceof NotSent, why });
    }
  }

  async #reply(to: string, reply: Reply): Promise<void> {
    await this.#parts.tell(this.#textOf(to, reply)).catch(this.#parts.onTrouble);
  }

  #textOf(to: string, content: Ask | Reply): string {
    return `${to} ${this.#parts.seal(Buffer.from(JSON.stringify(content, written))).toString("base64")}`;
  }

  #expectLate(id: string, onLateAnswer: AskOptions["onLateAnswer"]): void {
    const forget = () => this.#waiting.delete(id);
    if (this.#waiting.size >= lateMax) return void forget();
    const timer = setTimeout(forget, lateForMs).unref();
    this.#waiting.set(id, {
      settle: ({ answer }) => {
        clearTimeout(timer);
        forget();
        if (answer !== undefined) onLateAnswer(answer);
      },
    });
  }
}

const minor = /Minor$/;

function written(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}

/** Amounts alone are bigints: their names end so. */
function revived(name: string, value: unknown): unknown {
  return minor.test(name) && typeof value === "string" ? BigInt(value) : value;
}
