import { setTimeout as pause } from "node:timers/promises";
import { type Clock, within } from "../../../clock.ts";
import { messageOf } from "../../../errors.ts";
import { approvedCode, malfunctionCode } from "../../../response-codes.ts";
import { NoAnswer, NotSent } from "../../acquirer.ts";
import type { HostRequest, HostRequestMeaning } from "../host-requests.ts";
import type { KeyExchange } from "../key-exchange.ts";
import { answerWith, approvalOf } from "../mapping.ts";
import type { IsoMessage } from "../message/codec.ts";
import type { NetworkName } from "../profile/schema.ts";
import type { SignOffs } from "../sign-offs.ts";
import { type ConnectionOptions, connectTo, type Host, type HostConnection } from "./connection.ts";
import type { ExchangeOptions, Exchanges } from "./exchanges.ts";
import type { Wire } from "./wire.ts";

/** An event of a link, for the log, for metrics, and for test runs. */
export type LinkEvent =
  | { readonly kind: "up" | "down" | "unusable"; readonly host: string; readonly detail: string }
  /** A new MAC key was applied, or could not be. */
  | { readonly kind: "key" | "key_refused"; readonly host: string; readonly detail: string }
  /** A message that this host's profile cannot express: it is never sent. */
  | { readonly kind: "unwritable"; readonly host: string; readonly detail: string }
  /** A message that could not be read, or answers nothing that was asked. */
  | { readonly kind: "ignored"; readonly host: string; readonly detail: string; readonly message?: IsoMessage }
  | { readonly kind: "sent"; readonly host: string; readonly message: IsoMessage }
  | { readonly kind: "received"; readonly host: string; readonly message: IsoMessage }
  /** The host asked something by itself, and was answered. */
  | (HostsOwn & { readonly kind: "asked"; readonly detail: string });

/** A request that a host sends by itself. */
export interface HostsOwn {
  readonly host: string;
  readonly means: HostRequestMeaning;
  readonly message: IsoMessage;
}

export interface LinkState {
  readonly isUp: boolean;
  /** The host that is connected has signed off, and takes nothing until it signs on. */
  readonly isSignedOff: boolean;
  /** In words: which host, since when, or why not. */
  readonly detail: string;
  /** The time since the host last sent anything, while the link is up. */
  readonly silentMs?: number;
}

/** What the host's profile says of messages between the two ends. */
interface NetworkMessages {
  /** One of the link's own. Undefined: the host takes none such. */
  message(kind: NetworkName): IsoMessage | undefined;
  /** The response code of ISO 8583:1987 in an answer to a sign-on, or to a request for a key. */
  codeOf(answer: IsoMessage, kind: "signOn" | "keyRequest"): string;
  /** Reads a request of the host's own; undefined if it is not supported. */
  read(request: IsoMessage): HostRequest | undefined;
  /** Undefined: the keys of the MACs do not come over the link. */
  readonly keys?: LinkKeys | undefined;
}

export type LinkKeys = Pick<KeyExchange, "requestEveryMs" | "begin" | "brings" | "take" | "ask" | "asking">;

export interface LinkTimings {
  readonly connectTimeoutMs: number;
  /** The timeout of sign-on and echo. */
  readonly networkTimeoutMs: number;
  /** After so long without any message from the host, it is asked for a sign of life. */
  readonly echoEveryMs: number;
  /** The wait after a round through all hosts. The first is 0, and so is the first after a good connection. */
  readonly backOffMs: (round: number) => number;
  /** A connection that lasted this long after its sign-on was good: the waits begin again with the shortest. */
  readonly stableMs: number;
}

export interface LinkOptions extends Omit<ConnectionOptions, "onMessage" | "connectTimeoutMs"> {
  /** In the order in which they are tried. */
  readonly hosts: readonly Host[];
  readonly wire: Wire;
  readonly network: NetworkMessages;
  /** Shared by all connections of an acquirer: an answer may come over any. */
  readonly exchanges: Exchanges;
  readonly signOffs: SignOffs;
  /** The key that a message and its answer share. */
  readonly matchKeyOf: (message: IsoMessage) => string;
  readonly timings: LinkTimings;
  readonly clock: Clock;
  readonly onEvent: (event: LinkEvent) => void;
  /** Resolves once what the host asked is durable: only then it is answered. Absent: an advice is not answered. */
  readonly noteAsked?: ((asked: HostsOwn) => Promise<void>) | undefined;
}

export interface RequestOptions extends Omit<ExchangeOptions, "owner"> {
  readonly onSent?: ((host: string) => void) | undefined;
}

interface Session {
  readonly name: string;
  readonly connection: HostConnection;
  readonly sinceMs: number;
  heardAtMs: number;
}

const closed = "the link was closed";

/**
 * Keeps one connection to one of several hosts. Requests of many callers share it, each answer finding its own.
 *
 * ```
 * connect ──► sign on ──► request the key ──► up ◄──(the host signs off, and on)──► signed off
 *    ▲           │               │             │ (silence: an echo)                     │
 *    │           ▼               ▼             ▼           answers in flight, then      ▼
 *    └────── the next host; after all of them, a wait; the first after a good connection
 * ```
 *
 * `Exchanges` matches answers with requests, `Wire` has the bytes, `SignOffs` is what all instances know of the hosts.
 */
export class Link {
  readonly #options: LinkOptions;
  readonly #exchanges: Exchanges;
  readonly #closing = new AbortController();
  readonly #ups = new Set<() => void>();
  #session: Session | undefined;
  #downBecause = "not connected yet";
  #downSinceMs: number;
  #running: Promise<void> | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#exchanges = options.exchanges;
    this.#downSinceMs = options.clock.monotonicMs();
    options.signOffs.onChange(() => this.#signOffsChanged());
  }

  start(): void {
    if (this.#running === undefined) this.#running = this.#run();
  }

  /** Whether messages can be sent now. */
  get isUp(): boolean {
    return this.#usable !== undefined;
  }

  /** The host at which it is signed on, as name and port. */
  get host(): string | undefined {
    return this.#usable?.name;
  }

  /** The time since the connection ended that was up last; 0 while it is connected. */
  get downMs(): number {
    return this.#session === undefined ? this.#options.clock.monotonicMs() - this.#downSinceMs : 0;
  }

  get #usable(): Session | undefined {
    const session = this.#session;
    return session === undefined || this.#options.signOffs.has(session.name) ? undefined : session;
  }

  state(): LinkState {
    if (this.#session === undefined) return { isUp: false, isSignedOff: false, detail: this.#downBecause };
    const { name, sinceMs, heardAtMs } = this.#session;
    const nowMs = this.#options.clock.monotonicMs();
    const s = Math.floor((nowMs - sinceMs) / 1_000);
    const silentMs = nowMs - heardAtMs;
    if (this.#usable === undefined) return { isUp: false, isSignedOff: true, detail: `${name} signed off`, silentMs };
    return { isUp: true, isSignedOff: false, detail: `signed on at ${name} for ${s} s`, silentMs };
  }

  async isUpWithin(timeoutMs: number): Promise<boolean> {
    if (this.isUp) return true;
    if (this.#closing.signal.aborted) return false;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ups.add(resolve);
    await within(timeoutMs, promise);
    this.#ups.delete(resolve);
    return this.isUp;
  }

  /** The hosts that have signed off are others now. */
  #signOffsChanged(): void {
    if (this.isUp) this.#wake();
    else this.#leaveSignedOff();
  }

  /**
   * Sends a request at once and waits for its answer.
   * Rejects with NotSent when it certainly did not leave, with NoAnswer when none came in time or the link broke.
   */
  request(message: IsoMessage, options: RequestOptions): Promise<IsoMessage> {
    const session = this.#usable;
    if (session === undefined) return Promise.reject(new NotSent(`No host is signed on: ${this.state().detail}`));
    return this.#requestOn(session, message, options);
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    const session = this.#session;
    this.#closing.abort();
    this.#down(closed);
    this.#wake();
    if (session !== undefined) await this.#signOff(session);
    session?.connection.close(closed);
    await this.#running;
  }

  async #run(): Promise<void> {
    const { hosts, timings } = this.#options;
    const { signal } = this.#closing;
    for (let round = 0; !signal.aborted; round += 1) {
      // One that signed off is tried when no other can be used: it may accept a sign-on by now.
      for (const host of this.#inTurn(hosts)) {
        const stoodMs = await this.#keep(host);
        if (signal.aborted) return;
        // Begins again with the first host, which is the preferred one.
        if (stoodMs >= timings.stableMs) {
          round = 0;
          break;
        }
      }
      await pause(timings.backOffMs(round), undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  /** Connects, signs on, and waits until the connection ends. @returns how long it lasted after the sign-on */
  async #keep(host: Host): Promise<number> {
    const { clock, onEvent, timings, network, signOffs } = this.#options;
    const name = `${host.host}:${host.port}`;
    let connection: HostConnection | undefined;
    try {
      const onMessage = (bytes: Buffer) => this.#received(session, bytes);
      const options = { ...this.#options, connectTimeoutMs: timings.connectTimeoutMs, onMessage };
      connection = await connectTo(host, options, this.#closing.signal);
      this.#throwIfClosed();
      const nowMs = clock.monotonicMs();
      const session: Session = { name, connection, sinceMs: nowMs, heardAtMs: nowMs };
      // Later, `#down` ends what waits. A race with `ended` for each message would hold memory until it ends.
      void connection.ended.then((why) => {
        if (this.#session !== session) this.#exchanges.giveUp(this, why);
      });
      await network.keys?.begin();
      await signOffs.reread();
      this.#throwIfClosed();
      await this.#signOn(session, network.message("signOn"));
      await this.#requestKey(session);
      this.#throwIfClosed();
      this.#up(session);
      const upMs = clock.monotonicMs();
      const why = await this.#untilEnded(session);
      onEvent({ kind: "down", host: name, detail: why });
      this.#down(`${name}: ${why}`);
      return clock.monotonicMs() - upMs;
    } catch (error) {
      const detail = messageOf(error);
      connection?.close(detail);
      if (!this.#closing.signal.aborted) onEvent({ kind: "unusable", host: name, detail });
      this.#down(`${name}: ${detail}`);
      return 0;
    }
  }

  #throwIfClosed(): void {
    if (this.#closing.signal.aborted) throw new Error(closed);
  }

  async #signOn(session: Session, signOn: IsoMessage | undefined): Promise<void> {
    if (signOn === undefined) return;
    try {
      const answer = await this.#askNetwork(session, signOn);
      const { network, signOffs } = this.#options;
      const code = network.codeOf(answer, "signOn");
      if (code !== approvedCode) throw new Error(`the host refused the sign-on with ${code || "no response code"}`);
      if (!signOffs.has(session.name)) return;
      await signOffs.note(session.name, false);
      signOffs.changed();
    } catch (error) {
      session.connection.close("the sign-on failed");
      throw error;
    }
  }

  async #signOff(session: Session): Promise<void> {
    try {
      if (await this.#options.signOffs.isUsedByOthers()) return;
      const signOff = this.#options.network.message("signOff");
      if (signOff !== undefined) this.#sendOn(session, signOff);
    } catch (error) {
      this.#unwritable(session, error);
    }
  }

  /** A connection without its key is of no use. */
  async #requestKey(session: Session): Promise<void> {
    const { keys, message } = this.#options.network;
    // The host may send it unasked.
    const request = keys && message("keyRequest");
    if (keys === undefined || request === undefined) return;
    try {
      await keys.ask(async () => {
        const answer = await this.#askNetwork(session, request);
        const code = this.#options.network.codeOf(answer, "keyRequest");
        if (code === approvedCode) return answer;
        throw new Error(`the host refused a new key with ${code || "no response code"}`);
      });
      this.#options.onEvent({ kind: "key", host: session.name, detail: "asked for" });
    } catch (error) {
      const detail = messageOf(error);
      this.#options.onEvent({ kind: "key_refused", host: session.name, detail });
      session.connection.close("no new key came");
      throw error;
    }
  }

  /** The host sends a key: the answer has a MAC under the old one, and everything after it under the new one. */
  async #takeKey(session: Session, keys: LinkKeys, request: IsoMessage): Promise<void> {
    const { onEvent } = this.#options;
    const host = session.name;
    try {
      await keys.take(request, () => this.#sendOn(session, approvalOf(request)));
      onEvent({ kind: "key", host, detail: "sent by the host" });
    } catch (error) {
      onEvent({ kind: "key_refused", host, detail: messageOf(error) });
      this.#sendOn(session, answerWith(request, malfunctionCode));
    }
  }

  #up(session: Session): void {
    this.#session = session;
    this.#options.onEvent({ kind: "up", host: session.name, detail: "signed on" });
    this.#signOffsChanged();
  }

  #wake(): void {
    for (const resolve of this.#ups) resolve();
  }

  #inTurn(hosts: readonly Host[]): readonly Host[] {
    const isOff = ({ host, port }: Host) => this.#options.signOffs.has(`${host}:${port}`);
    return [...hosts.filter((host) => !isOff(host)), ...hosts.filter(isOff)];
  }

  /** Its host signed off: answers in flight may come yet, and then another host is asked. The only one may sign on. */
  #leaveSignedOff(): void {
    const session = this.#session;
    const { hosts, signOffs } = this.#options;
    if (session === undefined || hosts.every(({ host, port }) => signOffs.has(`${host}:${port}`))) return;
    void this.#exchanges.idle(this).then(() => {
      if (this.#usable !== session) session.connection.close("the host signed off");
    });
  }

  /** The answer tells the host that it is known durably. */
  async #answerHost(session: Session, message: IsoMessage, { means, answer }: HostRequest): Promise<void> {
    const { onEvent, noteAsked, signOffs } = this.#options;
    const host = session.name;
    if (means === "advice" && noteAsked === undefined) {
      // A host does not repeat what was answered.
      const detail = "an advice of the host is not answered here, where no event is kept: the host sends it again";
      return onEvent({ kind: "ignored", host, detail });
    }
    try {
      if (means === "signOn" || means === "signOff") await signOffs.note(host, means === "signOff");
      await noteAsked?.({ host, means, message });
    } catch (error) {
      const why = messageOf(error);
      onEvent({ kind: "ignored", host, detail: `what the host asked could not be stored: ${why}`, message });
      this.#sendOn(session, answerWith(message, malfunctionCode));
      return signOffs.changed();
    }
    if (answer !== undefined) this.#sendOn(session, answer);
    onEvent({ kind: "asked", host, means, detail: `the host sent a request of its own: ${means}`, message });
    if (means === "key") onEvent({ kind: "key_refused", host, detail: "the profile takes no key from the host" });
    if (means === "signOn" || means === "signOff") signOffs.changed();
  }

  /**
   * Requests in flight may have arrived: nobody waits for them, and a late answer may still arrive over the next
   * connection.
   */
  #down(why: string): void {
    if (this.#session !== undefined) this.#downSinceMs = this.#options.clock.monotonicMs();
    this.#session = undefined;
    this.#downBecause = why;
    this.#exchanges.giveUp(this, `The link to the host broke: ${why}`);
  }

  /** Asks for a sign of life whenever the host was silent for long. */
  async #untilEnded(session: Session): Promise<string> {
    const { echoEveryMs } = this.#options.timings;
    let isAsking = false;
    const timer = setInterval(() => {
      const isSilent = this.#options.clock.monotonicMs() - session.heardAtMs >= echoEveryMs;
      if (!isSilent || isAsking) return;
      isAsking = true;
      this.#echo(session)
        .catch((error: unknown) => session.connection.close(echoFailure(error)))
        .finally(() => {
          isAsking = false;
        });
    }, echoEveryMs / 2);
    const { requestEveryMs = null } = this.#options.network.keys ?? {};
    const renewing =
      requestEveryMs === null
        ? undefined
        : setInterval(() => void this.#requestKey(session).catch(() => undefined), requestEveryMs);
    try {
      return await session.connection.ended;
    } finally {
      clearInterval(timer);
      clearInterval(renewing);
    }
  }

  async #echo(session: Session): Promise<void> {
    const echo = this.#options.network.message("echo");
    if (echo !== undefined) await this.#askNetwork(session, echo);
  }

  #askNetwork(session: Session, message: IsoMessage): Promise<IsoMessage> {
    const options = { timeoutMs: this.#options.timings.networkTimeoutMs, onLateAnswer: () => undefined };
    return this.#requestOn(session, message, options);
  }

  #requestOn(session: Session, message: IsoMessage, options: RequestOptions): Promise<IsoMessage> {
    const exchange = this.#exchanges.open(this.#options.matchKeyOf(message), { ...options, owner: this });
    try {
      if (this.#sendOn(session, message)) {
        options.onSent?.(session.name);
        return exchange.answer;
      }
      exchange.cancel();
      return Promise.reject(new NotSent("The host accepts no more messages now"));
    } catch (error) {
      exchange.cancel();
      this.#unwritable(session, error);
      return Promise.reject(new NotSent("The message could not be written", { cause: error }));
    }
  }

  #unwritable({ name: host }: Session, error: unknown): void {
    this.#options.onEvent({ kind: "unwritable", host, detail: messageOf(error) });
  }

  #sendOn(session: Session, message: IsoMessage): boolean {
    const hasLeft = session.connection.send(this.#options.wire.write(message));
    if (hasLeft) this.#options.onEvent({ kind: "sent", host: session.name, message });
    return hasLeft;
  }

  #received(session: Session, bytes: Buffer): void {
    const { wire, matchKeyOf, network, onEvent, clock } = this.#options;
    const host = session.name;
    session.heardAtMs = clock.monotonicMs();
    let message: IsoMessage;
    try {
      message = wire.read(bytes);
    } catch (error) {
      const asking = network.keys?.asking;
      // Its MAC may be under a key that the host was asked for, or is asked for next.
      if (asking === undefined) onEvent({ kind: "ignored", host, detail: messageOf(error) });
      else void asking.then(() => this.#received(session, bytes));
      return;
    }
    try {
      onEvent({ kind: "received", host, message });
      if (!isRequest(message)) {
        const settled = this.#exchanges.settle(matchKeyOf(message), message);
        if (settled === "unknown") onEvent({ kind: "ignored", host, detail: "it matches no request", message });
        if (settled === "repeated") onEvent({ kind: "ignored", host, detail: "it was answered so before" });
        return;
      }
      if (network.keys?.brings(message)) {
        this.#takeKey(session, network.keys, message).catch((error: unknown) => this.#unwritable(session, error));
        return;
      }
      const asked = network.read(message);
      if (asked === undefined) {
        onEvent({ kind: "ignored", host, detail: "the host sent a request that is not supported", message });
        return;
      }
      this.#answerHost(session, message, asked).catch((error: unknown) => this.#unwritable(session, error));
    } catch (error) {
      onEvent({ kind: "ignored", host, detail: messageOf(error) });
    }
  }
}

function echoFailure(error: unknown): string {
  if (error instanceof NoAnswer) return "the host did not answer an echo";
  return `no echo could be sent: ${messageOf(error)}`;
}

/** The third digit of the MTI: 0, 2 and 4 are requests, 1, 3 and 5 answers. */
function isRequest({ mti }: IsoMessage): boolean {
  return Number(mti[2]) % 2 === 0;
}

/** Doubled each time, to at most `mostMs`; a fifth more or less, so that instances do not come back together. */
export function doubledFrom(firstMs: number, mostMs: number): LinkTimings["backOffMs"] {
  return (round) => Math.min(mostMs, firstMs * 2 ** round) * (0.8 + Math.random() * 0.4);
}
