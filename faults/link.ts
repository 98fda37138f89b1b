import { once } from "node:events";
import { type AddressInfo, connect, createServer, type NetConnectOpts, type Server, type Socket } from "node:net";
import { Transform, type TransformCallback } from "node:stream";
import type { SeededRandom } from "./random.ts";

/** Faults of connections. */
export type LinkFault =
  /** Every connection is reset, and none is accepted. */
  | "cut"
  /** Connections are refused, as at a closed port. */
  | "refuse"
  /** Nothing that callers send arrives, until the end: then it does, as TCP repeats it. */
  | "hold-requests"
  /** Nothing that is answered arrives, until the end. */
  | "hold-answers"
  /** Each piece is late. */
  | "slow"
  /** Pieces stall and connections break, at random. */
  | "lossy";

const slowMs = 120;
const stallMs = 400;
const stallShare = 0.05;
const breakShare = 0.01;

/** One way of a connection: pieces wait in order while the network has them, and no more is read than streams hold. */
class Way extends Transform {
  readonly #delayMs: () => number;
  #held: PromiseWithResolvers<void> | undefined;

  constructor(delayMs: () => number) {
    super();
    this.#delayMs = delayMs;
  }

  hold(): void {
    this.#held ??= Promise.withResolvers();
  }

  release(): void {
    this.#held?.resolve();
    this.#held = undefined;
  }

  override _transform(piece: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    void this.#passes(this.#delayMs()).then(() => done(null, piece));
  }

  override _flush(done: TransformCallback): void {
    void this.#passes(0).then(() => done());
  }

  async #passes(waitMs: number): Promise<void> {
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    await this.#held?.promise;
  }
}

interface Pair {
  isReset: boolean;
  readonly caller: Socket;
  readonly target: Socket;
  readonly requests: Way;
  readonly answers: Way;
}

/** A network link of our own between two parties. It forwards everything until a fault begins. */
export class FaultyLink {
  readonly #random: SeededRandom;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #target: NetConnectOpts;
  #trouble: LinkFault | undefined;
  /** Damaged connections, each with at most one answer that may not have arrived. */
  damaged = 0;
  port = 0;
  #host = "";

  constructor(target: NetConnectOpts, random: SeededRandom) {
    this.#target = target;
    this.#random = random;
    this.#server = createServer({ allowHalfOpen: true }, (caller) => this.#take(caller));
  }

  async listen(host: string): Promise<void> {
    this.#host = host;
    this.#server.listen(this.port, host);
    await once(this.#server, "listening");
    this.port = (this.#server.address() as AddressInfo).port;
  }

  /** Later connections go there; established ones are closed. */
  leadTo(target: NetConnectOpts): void {
    this.#target = target;
    this.cutAll();
  }

  async begin(trouble: LinkFault): Promise<void> {
    this.#trouble = trouble;
    if (trouble === "cut" || trouble === "refuse") this.cutAll();
    else this.damaged += this.#pairs.size;
    for (const pair of this.#pairs) this.#hold(pair);
    if (trouble === "refuse") await this.#stopListening();
  }

  /** The network works again. Held data arrive late or, with `reset`, never. */
  async end({ reset = false } = {}): Promise<void> {
    const trouble = this.#trouble;
    this.#trouble = undefined;
    if (reset) this.cutAll();
    for (const { requests, answers } of this.#pairs) {
      requests.release();
      answers.release();
    }
    if (trouble === "refuse") await this.listen(this.#host);
  }

  cutAll(): void {
    this.damaged += this.#pairs.size;
    for (const pair of this.#pairs) reset(pair);
    this.#pairs.clear();
  }

  async close(): Promise<void> {
    this.cutAll();
    if (this.#server.listening) await this.#stopListening();
  }

  async #stopListening(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    await closed;
  }

  #take(caller: Socket): void {
    if (this.#trouble === "cut") return void caller.on("error", () => undefined).resetAndDestroy();
    const target = connect({ ...this.#target, allowHalfOpen: true } as NetConnectOpts);
    for (const socket of [caller, target]) socket.setNoDelay(true);
    const pair: Pair = {
      isReset: false,
      caller,
      target,
      requests: new Way(() => this.#delayMs(pair)),
      answers: new Way(() => this.#delayMs(pair)),
    };
    caller.pipe(pair.requests).pipe(target);
    target.pipe(pair.answers).pipe(caller);
    this.#pairs.add(pair);
    if (this.#trouble !== undefined) this.damaged += 1;
    this.#hold(pair);
    for (const [one, other] of [
      [caller, target],
      [target, caller],
    ] as const) {
      one.on("error", () => undefined);
      one.on("close", () => {
        // One that is being reset ends by that: Node leaves it open when it is destroyed meanwhile.
        if (!pair.isReset) other.destroy();
        this.#pairs.delete(pair);
      });
    }
  }

  #hold({ requests, answers }: Pair): void {
    if (this.#trouble === "hold-requests") requests.hold();
    if (this.#trouble === "hold-answers") answers.hold();
  }

  #delayMs(pair: Pair): number {
    if (this.#trouble === "slow") return slowMs;
    if (this.#trouble !== "lossy") return 0;
    const drawn = this.#random.next();
    if (drawn < breakShare) reset(pair);
    return drawn < stallShare ? stallMs : 0;
  }
}

/** As a network does that has lost the connection: the caller finds it broken, not ended. */
function reset(pair: Pair): void {
  const { caller, target } = pair;
  if (pair.isReset) return;
  pair.isReset = !caller.writableEnded;
  if (pair.isReset) caller.resetAndDestroy();
  else caller.destroy();
  target.destroy();
}
