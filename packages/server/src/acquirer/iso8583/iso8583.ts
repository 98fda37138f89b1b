import type { Clock } from "../../clock.ts";
import { messageOf } from "../../errors.ts";
import { holdsCardNumber } from "../../guards/card-number.ts";
import {
  type Acquirer,
  type AcquirerAnswer,
  type AcquirerAway,
  type AcquirerHealth,
  type AcquirerMessage,
  type AskOptions,
  NoAnswer,
  NotSent,
  OtherSite,
  type UnmatchedAnswer,
} from "../acquirer.ts";
import { HostRequests } from "./host-requests.ts";
import { KeyExchange, KeyOpener, type MacKeyStore } from "./key-exchange.ts";
import type { Host, TlsOptions } from "./link/connection.ts";
import { MatchLocks } from "./link/exchanges.ts";
import { doubledFrom, type LinkEvent, type LinkOptions, type LinkTimings } from "./link/link.ts";
import { Links } from "./link/links.ts";
import { Wire } from "./link/wire.ts";
import { layoutOf, Mapping, nameOf } from "./mapping.ts";
import { Codec, type IsoMessage } from "./message/codec.ts";
import { MacKeys } from "./message/mac.ts";
import { matchProblems, wantsCards } from "./profile/read.ts";
import type { NetworkName, Profile } from "./profile/schema.ts";
import { type SignOffStore, SignOffs } from "./sign-offs.ts";

export interface Iso8583Options {
  readonly profile: Profile;
  /** In the order in which they are tried. */
  readonly hosts: readonly Host[];
  readonly tls?: TlsOptions | undefined;
  /** Required if the profile requires MACs. */
  readonly macKey?: Buffer | undefined;
  /** Required if the profile has keys come over the link. */
  readonly keyEncryptionKey?: Buffer | undefined;
  /** The store of keys that belong to the acquirer and not to a connection. */
  readonly macKeyStore?: MacKeyStore | undefined;
  /** Absent: no other process uses the hosts. */
  readonly signOffs?: SignOffStore | undefined;
  readonly clock: Clock;
  /** For so long requests of an earlier process, or another instance, are waited for. Absent: there are none. */
  readonly earlierTimeoutMs?: number;
  /** It connects when {@link Iso8583Acquirer.connect} says so, and not at once. */
  readonly connectsLater?: boolean;
  /** Called for events of the link; messages in them are not masked. */
  readonly onEvent?: (event: LinkEvent) => void;
  readonly noteAsked?: LinkOptions["noteAsked"];
  readonly timings?: Partial<Pick<LinkTimings, "backOffMs" | "stableMs">>;
}

/** A line that drops every few seconds must cost few commands; a host that closes each connection at once is let be. */
const defaultTimings = { backOffMs: doubledFrom(200, 30_000), stableMs: 1_000 };
/** The maximum wait of a message for the link: a host that closed a silent connection is back by then. */
const linkWaitMsMax = 3_000;
const traceNos = 999_999;

export class Iso8583Acquirer implements Acquirer {
  readonly approvals: ReadonlySet<string>;
  readonly wantsCards: boolean;
  readonly reversalMarginMs: number;
  readonly #mapping: Mapping;
  readonly #link: Links;
  readonly #locks: MatchLocks;
  readonly #tokens: RegExp;
  readonly #clock: Clock;
  readonly #name: string;
  readonly #keys: KeyExchange | undefined;
  readonly #onEvent: (event: LinkEvent) => void;
  readonly #signOffs: SignOffs;
  #traceNo = Math.floor(Math.random() * traceNos);
  #onUnmatched: (answer: UnmatchedAnswer) => void = () => undefined;
  readonly #earlierTimeoutMs: number | undefined;
  #hasBegun = false;
  #closed = false;

  /**
   * Begins to connect at once, unless it is to connect later.
   *
   * @throws RangeError if the profile requires a MAC and its key is missing or has another length
   */
  constructor(options: Iso8583Options) {
    const { profile, hosts, tls, clock, connectsLater = false, onEvent = () => undefined, timings } = options;
    this.#mapping = new Mapping(profile);
    this.#tokens = new RegExp(profile.cardTokens);
    this.#clock = clock;
    this.#name = profile.name;
    this.#onEvent = (event) => {
      if (event.kind === "key_refused") this.#keys?.refuse(event.detail);
      onEvent(event);
      if (event.kind === "ignored" && event.message !== undefined) this.#reportUnmatched(event.message);
    };
    this.approvals = this.#mapping.approvals;
    this.wantsCards = wantsCards(profile);
    this.reversalMarginMs = profile.timings.reversalMarginMs;
    this.#locks = new MatchLocks({ oneAtATime: matchProblems(profile).length > 0 });
    const macKeys = macKeysOf(options);
    this.#keys = macKeys && keyExchangeOf(options, macKeys);
    const wire = new Wire({
      codec: new Codec(layoutOf(profile)),
      framing: profile.framing,
      authentication: macKeys && profile.mac ? { ...profile.mac, mac: macKeys } : undefined,
    });
    const hostRequests = new HostRequests(profile);
    this.#signOffs = new SignOffs(options.signOffs);
    const linkOptions: Omit<LinkOptions, "exchanges"> = {
      hosts,
      wire,
      framing: profile.framing,
      tls,
      network: {
        message: (kind) => this.#network(kind),
        codeOf: (answer, kind) => this.#mapping.codeOf(answer, kind),
        read: (request) => hostRequests.read(request),
        keys: this.#keys,
      },
      signOffs: this.#signOffs,
      matchKeyOf: (message) => this.#mapping.matchKeyOf(message),
      timings: { ...profile.timings, ...defaultTimings, ...timings },
      clock,
      onEvent: this.#onEvent,
      noteAsked: options.noteAsked,
    };
    this.#link = new Links(linkOptions, profile.network.connections);
    this.#earlierTimeoutMs = options.earlierTimeoutMs;
    if (!connectsLater) this.connect();
  }

  /** Does nothing if it has connected, or is closed. */
  connect(): void {
    if (this.#closed || this.#hasBegun) return;
    this.#hasBegun = true;
    if (this.#earlierTimeoutMs !== undefined) this.#locks.lockAll(this.#earlierTimeoutMs + this.reversalMarginMs);
    this.#link.start();
  }

  refusesToken(token: string): string | undefined {
    // A number in the token's place would lie in field 48 of a trace, and go where no card number is expected.
    if (holdsCardNumber(token.replace(/^0+/, ""))) return "A card number is not a token.";
    return this.#tokens.test(token) ? undefined : "The acquirer's host does not know tokens of this form.";
  }

  async ask(
    message: AcquirerMessage,
    { timeoutMs, onLateAnswer, onSent, site: noted }: AskOptions,
  ): Promise<AcquirerAnswer> {
    const startedMs = this.#clock.monotonicMs();
    if (this.#closed) throw new NotSent("The link to the acquirer is closed");
    const request = this.#request(message);
    // If the link is up there is no wait, not even a microtask: messages are sent in the order of the calls.
    if (!this.#link.isUp && !(await this.#link.isUpWithin(Math.min(timeoutMs, linkWaitMsMax)))) {
      throw new NotSent(`No host of the acquirer is connected: ${this.#link.state().detail}`);
    }
    const locking = this.#locks.lock(this.#mapping.matchKeyOf(request), identityOf(message), timeoutMs / 2);
    const lock = locking instanceof Promise ? await locking : locking;
    if (lock === undefined) throw new NotSent("The host could not tell its answer from that of another request");
    const site = this.#link.host;
    const sentMs = this.#clock.monotonicMs();
    const leftMs = timeoutMs - (sentMs - startedMs);
    let answer: IsoMessage;
    try {
      // A process that stood still may find that others have reversed it.
      if (leftMs <= 0) throw new NotSent("Its time was over before it could leave");
      if (noted !== undefined && site !== undefined && noted !== site) throw new OtherSite(site);
      answer = await this.#link.request(request, {
        timeoutMs: leftMs,
        onLateAnswer: (late) => {
          lock.release();
          onLateAnswer(this.#mapping.answer(late, request, nameOf(message)));
        },
        onSent: onSent && ((host) => onSent({ host, mti: request.mti })),
      });
      lock.release();
    } catch (error) {
      if (error instanceof NotSent) lock.release();
      else lock.releaseUnanswered(sentMs + leftMs + this.reversalMarginMs - this.#clock.monotonicMs());
      throw error;
    }
    const read = this.#mapping.answer(answer, request, nameOf(message));
    if (read.responseCode === "" && isRepeated(message)) throw new NoAnswer("The host's answer has no outcome");
    return { ...read, ...(site !== undefined && { site }) };
  }

  /** Undefined while no host is connected. */
  site(): string | undefined {
    return this.#link.host;
  }

  isUpWithin(timeoutMs: number): Promise<boolean> {
    return this.#link.isUpWithin(timeoutMs);
  }

  away(): Promise<AcquirerAway | undefined> | undefined {
    return this.#link.isUp ? undefined : this.#whyAway();
  }

  health(): AcquirerHealth {
    const { isUp, isSignedOff, detail, silentMs } = this.#link.state();
    const underKey = isUp && this.#keys !== undefined ? `, under ${this.#keys.detail()}` : "";
    const marked = isSignedOff ? { isSignedOff } : {};
    return { ok: isUp, ...marked, detail: `${detail}${underKey}`, ...(silentMs !== undefined && { silentMs }) };
  }

  onUnmatchedAnswer(listener: (answer: UnmatchedAnswer) => void): void {
    this.#onUnmatched = listener;
  }

  async reread(): Promise<void> {
    await this.#keys?.reread();
    await this.#signOffs.reread();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#link.close();
    this.#locks.close();
  }

  /** A connection that has just ended is waited for. */
  async #whyAway(): Promise<AcquirerAway | undefined> {
    const waitMs = linkWaitMsMax - this.#link.downMs;
    if (!this.#link.state().isSignedOff && waitMs > 0 && (await this.#link.isUpWithin(waitMs))) return undefined;
    const { isUp, isSignedOff, detail } = this.#link.state();
    if (isUp) return undefined;
    return { code: isSignedOff ? "acquirer_signed_off" : "acquirer_unreachable", detail };
  }

  #reportUnmatched(message: IsoMessage): void {
    const answer = this.#mapping.unmatchedAnswer(message);
    if (answer !== undefined) this.#onUnmatched(answer);
  }

  #request(message: AcquirerMessage): IsoMessage {
    try {
      return this.#mapping.request(message);
    } catch (error) {
      const why = messageOf(error);
      this.#onEvent({ kind: "unwritable", host: this.#name, detail: `${message.command}: ${why}` });
      throw new NotSent("The message cannot be written for this host", { cause: error });
    }
  }

  #network(kind: NetworkName): IsoMessage | undefined {
    this.#traceNo = (this.#traceNo % traceNos) + 1;
    const traceNo = this.#traceNo.toString().padStart(6, "0");
    return this.#mapping.network(kind, { command: "NETWORK", traceNo, atMs: this.#clock.nowMs() });
  }
}

/** The same one again has the same. */
function identityOf({ command, transactionId, traceNo }: AcquirerMessage): string {
  return `${command} ${transactionId} ${traceNo}`;
}

/** It is sent until an answer says what came of it. Every other message ends with its first answer. */
function isRepeated({ command }: AcquirerMessage): boolean {
  return command === "REVERSAL" || command === "SETTLEMENT" || command === "BATCH_UPLOAD";
}

function macKeysOf({ profile: { mac }, macKey, clock }: Iso8583Options): MacKeys | undefined {
  if (mac === null) return undefined;
  if (macKey === undefined) throw new RangeError("the profile requires MACs, and no MAC key is set");
  return new MacKeys(mac, macKey, clock);
}

function keyExchangeOf(options: Iso8583Options, keys: MacKeys): KeyExchange | undefined {
  const { profile, macKey, keyEncryptionKey, macKeyStore, clock } = options;
  const { algorithm, keyExchange } = profile.mac ?? {};
  if (!keyExchange || algorithm === undefined || macKey === undefined) return undefined;
  if (keyEncryptionKey === undefined) {
    throw new RangeError("the profile has keys come over the link, and no key-encryption key is set");
  }
  const opener = new KeyOpener(keyExchange.encryption, algorithm, keyEncryptionKey);
  const kept = keyExchange.belongsTo === "acquirer" ? macKeyStore : undefined;
  return new KeyExchange({ profile: keyExchange, opener, keys, registered: macKey, kept, clock });
}
