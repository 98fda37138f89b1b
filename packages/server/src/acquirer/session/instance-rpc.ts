import { randomUUID } from "node:crypto";
import { messageOf } from "../../errors.ts";
import {
  type AcquirerAnswer,
  type AcquirerMessage,
  type AskOptions,
  NoAnswer,
  NotSent,
  OtherSite,
} from "../acquirer.ts";

interface InstanceRpcParts {
  /** Sends a message to all instances, including this one, unless it is no longer wanted when its turn comes. */
  readonly publish: (payload: string, isWanted?: () => boolean) => Promise<unknown>;
  /** Encrypts under a key that all instances have: a message may hold a card's token, a track or a PIN block. */
  readonly seal: (plain: Buffer) => Buffer;
  readonly open: (sealed: Buffer) => Buffer;
  readonly onTrouble: (error: unknown) => void;
}

type RequestHandler = (
  message: AcquirerMessage,
  options: Pick<AskOptions, "timeoutMs" | "site">,
) => Promise<AcquirerAnswer>;

interface RpcRequest {
  readonly kind: "ask";
  readonly id: string;
  readonly from: string;
  readonly acquirer: string;
  readonly message: AcquirerMessage;
  readonly timeoutMs: number;
  /** The noted host, as in {@link AskOptions}. An older version sends none, and ignores it. */
  readonly site?: string | null | undefined;
}

interface RpcReply {
  readonly kind: "reply";
  readonly id: string;
  readonly answer?: AcquirerAnswer;
  /** In place of an answer: whether the message certainly did not leave, and the reason. */
  readonly notSent?: boolean;
  /** It did not leave because the instance no longer has the session. */
  readonly isGone?: boolean;
  /** It did not leave because it would have gone to this host, which is not the noted one. */
  readonly otherSite?: string;
  readonly why?: string;
}

/** A reply that is too long for one payload, in pieces. */
interface RpcPiece {
  readonly kind: "piece";
  readonly id: string;
  readonly nth: number;
  readonly count: number;
  /** A part of the reply's JSON, in base64. */
  readonly part: string;
}

/** The asked instance no longer has the session: the message did not leave, and may be passed on to the next holder. */
export class SessionGone extends NotSent {}

interface Waiting {
  /** The address and the acquirer of the request; empty: only a late answer is expected. */
  readonly handlerKey: string;
  readonly settle: (reply: RpcReply) => void;
  /** The caller stops waiting, but a late answer is still expected. */
  readonly abandon: (why: string) => void;
  /** The pieces of a long reply that have come. */
  readonly pieces: Map<number, string>;
}

/** The longest payload of PostgreSQL's NOTIFY. */
const payloadBytesMax = 7_999;
/** A piece of this many bytes, twice in base64 and encrypted, fits. */
const pieceBytes = 4_000;
/** An answer that was published before its instance gave the session up arrives within this time. */
const replyGraceMs = 1_000;
/** The time for which a late answer is passed on, and the number of requests that may wait for one. */
const lateForMs = 600_000;
const lateMax = 10_000;

/**
 * Remote calls between instances: one asks, the addressed one runs the request and replies. A message is never
 * duplicated, but may be lost when a connection breaks: then there is no answer, and the command is in doubt.
 */
export class InstanceRpc {
  /** This process, to which replies are addressed. */
  readonly #self = randomUUID();
  readonly #parts: InstanceRpcParts;
  readonly #waiting = new Map<string, Waiting>();
  readonly #handlers = new Map<string, RequestHandler>();
  readonly #addresses = new Set<string>([this.#self]);

  constructor(parts: InstanceRpcParts) {
    this.#parts = parts;
  }

  /** Runs the requests for this acquirer that are addressed to `address`. @returns a function that stops this */
  serve(acquirer: string, address: string, handler: RequestHandler): () => void {
    this.#addresses.add(address);
    this.#handlers.set(keyOf(address, acquirer), handler);
    return () => {
      this.#handlers.delete(keyOf(address, acquirer));
    };
  }

  /** Asks another instance. Equivalent to {@link Acquirer.ask}. */
  ask(to: string, acquirer: string, message: AcquirerMessage, options: AskOptions): Promise<AcquirerAnswer> {
    const id = randomUUID();
    const { timeoutMs, onLateAnswer, site } = options;
    const payload = this.#sealed(to, { kind: "ask", id, from: this.#self, acquirer, message, timeoutMs, site });
    if (payload.length > payloadBytesMax) {
      return Promise.reject(new NotSent("The message is too long to be passed on to the instance with the session"));
    }
    const { promise, resolve, reject } = Promise.withResolvers<AcquirerAnswer>();
    let isOver = false;
    const giveUp = (why: string) => {
      isOver = true;
      reject(new NoAnswer(why));
      this.#awaitLateAnswer(id, onLateAnswer);
    };
    const timer = setTimeout(() => giveUp(`No answer was passed on within ${timeoutMs} ms`), timeoutMs);
    this.#waiting.set(id, {
      handlerKey: keyOf(to, acquirer),
      abandon: (why) => {
        clearTimeout(timer);
        giveUp(why);
      },
      pieces: new Map(),
      settle: ({ answer, notSent, isGone, otherSite, why = "" }) => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        if (answer !== undefined) resolve(answer);
        else if (isGone === true) reject(new SessionGone(why));
        else if (otherSite !== undefined) reject(new OtherSite(otherSite));
        else reject(notSent === true ? new NotSent(why) : new NoAnswer(why));
      },
    });
    // Its Reversal may have been sent by then, by another instance.
    const published = this.#parts.publish(payload, () => !isOver);
    published.catch((error: unknown) => {
      if (isOver) return;
      clearTimeout(timer);
      this.#parts.onTrouble(error);
      // The message may have arrived anyway.
      giveUp("The instance with the session could not be reached");
    });
    return promise;
  }

  /** This address handles no request any more: callers that wait for its answer soon learn that none is known. */
  instanceLost(address: string, acquirer: string): void {
    setTimeout(() => {
      for (const { handlerKey, abandon } of [...this.#waiting.values()]) {
        if (handlerKey === keyOf(address, acquirer)) abandon("The instance no longer has the session");
      }
    }, replyGraceMs).unref();
  }

  received(payload: string): void {
    const [, to = "", sealed = ""] = /^([0-9a-f-]{36}) (.+)$/.exec(payload) ?? [];
    if (!this.#addresses.has(to)) return;
    try {
      const json = this.#parts.open(Buffer.from(sealed, "base64")).toString();
      const message = JSON.parse(json, revived) as RpcRequest | RpcReply | RpcPiece;
      if (message.kind === "reply") this.#waiting.get(message.id)?.settle(message);
      else if (message.kind === "piece") this.#receivedPiece(message);
      else void this.#handle(to, message);
    } catch (error) {
      this.#parts.onTrouble(error);
    }
  }

  /** Ends every wait. */
  close(): void {
    for (const { settle } of [...this.#waiting.values()]) settle({ kind: "reply", id: "", why: "The link was closed" });
    this.#handlers.clear();
  }

  async #handle(to: string, { id, from, acquirer, message, timeoutMs, site }: RpcRequest): Promise<void> {
    const reply = (content: Omit<RpcReply, "kind" | "id">) => this.#reply(from, { kind: "reply", id, ...content });
    const handler = this.#handlers.get(keyOf(to, acquirer));
    if (handler === undefined) {
      return reply({ notSent: true, isGone: true, why: "The instance no longer has the session" });
    }
    try {
      await reply({ answer: await handler(message, { timeoutMs, site }) });
    } catch (error) {
      const why = messageOf(error);
      const otherSite = error instanceof OtherSite && { otherSite: error.site };
      await reply({ notSent: error instanceof NotSent, isGone: error instanceof SessionGone, ...otherSite, why });
    }
  }

  async #reply(to: string, reply: RpcReply): Promise<void> {
    const payload = this.#sealed(to, reply);
    const payloads = payload.length > payloadBytesMax ? this.#inPieces(to, reply) : [payload];
    await Promise.all(payloads.map((one) => this.#parts.publish(one))).catch(this.#parts.onTrouble);
  }

  #inPieces(to: string, reply: RpcReply): string[] {
    const json = Buffer.from(JSON.stringify(reply, written));
    const count = Math.ceil(json.length / pieceBytes);
    return Array.from({ length: count }, (_, nth) => {
      const part = json.subarray(nth * pieceBytes, (nth + 1) * pieceBytes).toString("base64");
      return this.#sealed(to, { kind: "piece", id: reply.id, nth, count, part });
    });
  }

  #receivedPiece({ id, nth, count, part }: RpcPiece): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    const { pieces, settle } = waiting;
    pieces.set(nth, part);
    if (pieces.size < count) return;
    const parts = Array.from({ length: count }, (_, one) => Buffer.from(pieces.get(one) ?? "", "base64"));
    settle(JSON.parse(Buffer.concat(parts).toString(), revived) as RpcReply);
  }

  #sealed(to: string, content: RpcRequest | RpcReply | RpcPiece): string {
    return `${to} ${this.#parts.seal(Buffer.from(JSON.stringify(content, written))).toString("base64")}`;
  }

  #awaitLateAnswer(id: string, onLateAnswer: AskOptions["onLateAnswer"]): void {
    const forget = () => this.#waiting.delete(id);
    if (this.#waiting.size >= lateMax) return void forget();
    const timer = setTimeout(forget, lateForMs).unref();
    this.#waiting.set(id, {
      handlerKey: "",
      abandon: () => undefined,
      pieces: new Map(),
      settle: ({ answer }) => {
        clearTimeout(timer);
        forget();
        if (answer !== undefined) onLateAnswer(answer);
      },
    });
  }
}

function keyOf(address: string, acquirer: string): string {
  return `${address} ${acquirer}`;
}

const minor = /Minor$/;

function written(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}

/** Only amounts are bigints, and their names end accordingly. */
function revived(name: string, value: unknown): unknown {
  return minor.test(name) && typeof value === "string" ? BigInt(value) : value;
}
