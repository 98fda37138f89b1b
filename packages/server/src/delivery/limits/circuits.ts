import { createHash } from "node:crypto";
import { type EndpointId, type EventId, newId, type PartnerId } from "../../ids.ts";
import { type Addressed, callbackUrlOf, isRegistered, type RegisteredUrls, urlOfQueue } from "../../notification.ts";
import type { Page } from "../../page.ts";
import type { Attempt, Delivery, FailureReason, QueueKey } from "../delivery.ts";
import {
  afterSignal,
  type Circuit,
  type CircuitState,
  closedCircuit,
  type EndpointSignal,
  effectOf,
  probeWaitMs,
} from "./circuit.ts";

/** `origin`: everything that one origin hosts for a partner. `url`: one exact URL, which answered 410. */
export type EndpointKind = "origin" | "url";

/** A change of a circuit by the owner of its shard, written with the outcome that caused it. */
export interface CircuitChange extends QueueKey {
  /** The id of its row, if there is none yet. */
  readonly endpointId: EndpointId;
  readonly kind: EndpointKind;
  /** https://host:port, or the exact URL. */
  readonly target: string;
  readonly circuit: Circuit;
  /** Restored if the outcome cannot be stored. */
  readonly before: Circuit;
  /** Increases with each change by the worker: of those in one commit the highest one applies. */
  readonly changeNo: number;
  /** The epoch of the shard: a change by an earlier owner is dropped. */
  readonly epoch: number;
  /** The version that the change is based on: it is dropped if a person changed the circuit since. */
  readonly controlNo: number;
  /** The event of a new state, written only if the row was changed. */
  readonly event: { readonly id: EventId; readonly kind: "breaker_open" | "breaker_closed" | "endpoint_gone" } | null;
}

/** A circuit as stored in the database. */
export interface LoadedCircuit extends QueueKey {
  readonly circuit: Circuit;
  readonly controlNo: number;
}

/**
 * The number of circuits per partner in a worker's memory. Beyond it, those that changed longest ago are treated as
 * closed: after one attempt, or five, the state is known again.
 */
export const circuitsPerPartnerMax = 1_000;

/** Stores circuits, for the workers that own them. */
export interface CircuitStore {
  /**
   * Loads, for a new owner, the circuits of these shards that are tripped, gone or failing, and those that a person has
   * changed. Of each partner at most `circuitsPerPartnerMax`, the last changed first.
   */
  load(shards: readonly number[]): Promise<readonly LoadedCircuit[]>;
  /** Loads those circuits of these shards that a person has changed, for their owner, who knows the others. */
  loadChangedByHand(shards: readonly number[]): Promise<readonly LoadedCircuit[]>;
}

/** Whether an endpoint accepts all, one delivery as a probe, or nothing until a moment (undefined: until it changes). */
export type Gate = "passes" | "probe" | BlockedGate;
export interface BlockedGate {
  readonly untilMs: number | undefined;
  readonly reason: Circuit["lastReason"];
}

export function isBlocked(gate: Gate): gate is BlockedGate {
  return typeof gate !== "string";
}

/** The result of one attempt at an endpoint. */
export interface Observation extends Pick<EndpointSignal, "retryAfterMs" | "isProbe"> {
  readonly partnerId: PartnerId;
  readonly attempt: Attempt;
  /** Its URL was a registered one: a 410 makes that gone. */
  readonly isRegistered: boolean;
  /** The epoch of the partner's shard. */
  readonly epoch: number;
}

type ProbeDelivery = Pick<Delivery, "partnerId" | "id">;

interface StoredCircuit {
  circuit: Circuit;
  /** A monotonic time. `circuit.probeInMs` counts from here. */
  sinceMs: number;
  controlNo: number;
  /**
   * The delivery that probes it now: this reading of it, and not its id. An attempt of an earlier ownership of the same
   * notification may still be on the wire.
   */
  probe: ProbeDelivery | undefined;
}

/** The name of the circuit of everything that goes to one origin. */
export function originCircuit(url: string): string {
  return new URL(url).origin;
}

/** The name of a registered URL's own circuit. It is a hash, because a URL is too long for an index. */
export function urlCircuit(url: string): string {
  return `${originCircuit(url)} ${createHash("sha256").update(url).digest("hex")}`;
}

/** The circuits of the partners whose shards a worker owns. One that is not stored is closed. */
export class Circuits {
  readonly #random: () => number;
  readonly #nowMs: () => number;
  /** By partner; within a partner, the one that changed last comes last. */
  readonly #circuits = new Map<PartnerId, Map<string, StoredCircuit>>();
  #changeNo = 0;

  /** @param nowMs a monotonic clock */
  constructor(random: () => number, nowMs: () => number) {
    this.#random = random;
    this.#nowMs = nowMs;
  }

  /** The partner's circuits in memory. */
  countOf(partnerId: PartnerId): number {
    return this.#circuits.get(partnerId)?.size ?? 0;
  }

  /** An existing entry is the worker's own and newer, unless a person has changed the circuit since. */
  load(loaded: readonly LoadedCircuit[]): readonly QueueKey[] {
    const changed: QueueKey[] = [];
    for (const { partnerId, queue, circuit, controlNo } of loaded) {
      const known = this.#circuits.get(partnerId)?.get(queue);
      if (known !== undefined && known.controlNo >= controlNo) continue;
      // A probe on the wire continues: a second one beside it would show no more.
      this.#store(partnerId, queue, { circuit, sinceMs: this.#nowMs(), controlNo, probe: known?.probe });
      changed.push({ partnerId, queue });
    }
    return changed;
  }

  /** Forgets the partners whose shards belong to another worker now. */
  forget(isGone: (partnerId: PartnerId) => boolean): void {
    for (const partnerId of this.#circuits.keys()) if (isGone(partnerId)) this.#circuits.delete(partnerId);
  }

  /** Whether a queue is read: the endpoint that it is named for decides. @param urls undefined: not known yet */
  gateOfQueue({ partnerId, queue }: QueueKey, urls: RegisteredUrls | undefined): Gate {
    const registered = urls === undefined ? null : urlOfQueue(urls, queue);
    if (registered !== undefined) return this.#gateOfRegistered(partnerId, registered);
    // Version 0.1.0 put deliveries for a URL that was gone into a queue whose name has more after the origin.
    const [origin = queue] = queue.split(" ");
    return this.#gateOfOrigin(partnerId, origin);
  }

  /** Whether a delivery may begin: its own URL decides, as it is registered now. */
  gateOf(delivery: Addressed & Pick<Delivery, "partnerId">, urls: RegisteredUrls): Gate {
    const { partnerId } = delivery;
    const url = callbackUrlOf(delivery, urls);
    // One that cannot be read is attempted, and the attempt says so.
    if (url === null || isRegistered(urls, url) || !URL.canParse(url)) return this.#gateOfRegistered(partnerId, url);
    return this.#gateOfOrigin(partnerId, originCircuit(url));
  }

  /** A registered URL accepts nothing while it is gone, or its origin is tripped. Null: none is registered. */
  #gateOfRegistered(partnerId: PartnerId, url: string | null): Gate {
    const circuits = this.#circuits.get(partnerId);
    if (circuits === undefined || url === null || !URL.canParse(url)) return "passes";
    const gone = circuits.get(urlCircuit(url));
    if (gone?.circuit.state === "gone") return { untilMs: undefined, reason: gone.circuit.lastReason };
    return this.#gateOfOrigin(partnerId, originCircuit(url));
  }

  #gateOfOrigin(partnerId: PartnerId, origin: string): Gate {
    const kept = this.#circuits.get(partnerId)?.get(origin);
    if (kept?.circuit.state !== "open") return "passes";
    const untilMs = kept.sinceMs + (kept.circuit.probeInMs ?? 0);
    if (kept.probe !== undefined) return { untilMs: undefined, reason: kept.circuit.lastReason };
    return untilMs <= this.#nowMs() ? "probe" : { untilMs, reason: kept.circuit.lastReason };
  }

  /** Marks the delivery as the one probe of a tripped circuit, until `probeEnded`. */
  probeBegins(url: string, delivery: ProbeDelivery): void {
    const kept = this.#circuits.get(delivery.partnerId)?.get(originCircuit(url));
    if (kept !== undefined) kept.probe = delivery;
  }

  /** The probe got a response, or was not sent: then another may begin at once. */
  probeEnded(delivery: ProbeDelivery): void {
    for (const kept of this.#circuits.get(delivery.partnerId)?.values() ?? [])
      if (kept.probe === delivery) kept.probe = undefined;
  }

  /**
   * Judges an attempt. @returns the changes to write with its outcome: none for a success at an endpoint that has not
   * failed
   */
  observe({ partnerId, attempt, retryAfterMs, isProbe, isRegistered, epoch }: Observation): readonly CircuitChange[] {
    const effect = effectOf(attempt);
    const isKnown = this.#circuits.has(partnerId);
    // The attempt said nothing about it: the next probe waits as long as a first one.
    if (effect === "nothing" && isProbe && URL.canParse(attempt.url))
      this.#delayProbe(partnerId, originCircuit(attempt.url));
    if (effect === "nothing" || (effect === "lives" && !isKnown) || !URL.canParse(attempt.url)) return [];
    const { reason } = attempt;
    const origin = originCircuit(attempt.url);
    const originEffect = effect === "gone" ? "lives" : effect;
    const signal = { reason, retryAfterMs, isProbe };
    const changes = [
      this.#apply({ partnerId, queue: origin }, "origin", origin, { ...signal, effect: originEffect }, epoch),
    ];
    if (effect === "gone" && isRegistered) {
      const { href } = new URL(attempt.url);
      const key = { partnerId, queue: urlCircuit(attempt.url) };
      changes.push(this.#apply(key, "url", href, { ...signal, effect }, epoch));
    }
    return changes.filter((change) => change !== undefined);
  }

  /**
   * Undoes changes of `observe` that cannot be stored. Otherwise memory would keep a circuit open that the database
   * shows as closed, and that no person could close.
   */
  withdraw(changes: readonly CircuitChange[]): void {
    for (const { partnerId, queue, circuit, before, controlNo } of changes) {
      const kept = this.#circuits.get(partnerId)?.get(queue);
      // A later change is stored as a whole, and says what the database is to show.
      if (kept !== undefined && kept.circuit !== circuit) continue;
      const { probe, sinceMs = this.#nowMs() } = kept ?? {};
      // The probe did fail: the next one comes at its time, and the failures are counted again.
      const isStillOpen = before.state === "open" && circuit.state === "open";
      const undone = isStillOpen ? { ...before, probeInMs: circuit.probeInMs } : before;
      this.#store(partnerId, queue, { circuit: undone, sinceMs, controlNo, probe });
    }
  }

  #delayProbe(partnerId: PartnerId, queue: string): void {
    const kept = this.#circuits.get(partnerId)?.get(queue);
    if (kept?.circuit.state !== "open") return;
    kept.circuit = { ...kept.circuit, probeInMs: probeWaitMs(0, this.#random()) };
    kept.sinceMs = this.#nowMs();
  }

  #apply(
    { partnerId, queue }: QueueKey,
    kind: EndpointKind,
    target: string,
    signal: EndpointSignal,
    epoch: number,
  ): CircuitChange | undefined {
    const nowMs = this.#nowMs();
    const kept = this.#circuits.get(partnerId)?.get(queue);
    const before = kept === undefined ? closedCircuit : atMoment(kept, nowMs);
    const circuit = afterSignal(before, signal, this.#random());
    if (isSame(before, circuit)) return undefined;
    const controlNo = kept?.controlNo ?? 0;
    this.#store(partnerId, queue, { circuit, sinceMs: nowMs, controlNo, probe: kept?.probe });
    this.#changeNo += 1;
    const { state } = circuit;
    const event = state === before.state ? null : { id: newId<"event">(), kind: eventKinds[state] };
    const made = { endpointId: newId<"endpoint">(), changeNo: this.#changeNo, epoch, controlNo };
    return { partnerId, queue, kind, target, circuit, before, event, ...made };
  }

  #store(partnerId: PartnerId, queue: string, kept: StoredCircuit): void {
    const circuits = this.#circuits.get(partnerId) ?? new Map<string, StoredCircuit>();
    circuits.delete(queue);
    if (!isLikeNew(kept)) circuits.set(queue, kept);
    const [oldest] = circuits.keys();
    if (circuits.size > circuitsPerPartnerMax && oldest !== undefined) circuits.delete(oldest);
    if (circuits.size === 0) this.#circuits.delete(partnerId);
    else this.#circuits.set(partnerId, circuits);
  }
}

/** Nothing needs to be known about it: the next change overwrites its row, if there is one. */
function isLikeNew({ circuit: { state, failures }, controlNo }: StoredCircuit): boolean {
  return state === "closed" && failures === 0 && controlNo === 0;
}

const eventKinds = { open: "breaker_open", closed: "breaker_closed", gone: "endpoint_gone" } as const;

function atMoment({ circuit, sinceMs }: StoredCircuit, nowMs: number): Circuit {
  if (circuit.probeInMs === null) return circuit;
  return { ...circuit, probeInMs: circuit.probeInMs - (nowMs - sinceMs) };
}

/** Every failure counts. A probe that merely came closer is not a change. */
function isSame(before: Circuit, after: Circuit): boolean {
  return before.state === after.state && before.failures === after.failures;
}

/** An endpoint as the APIs show it. */
export interface Endpoint {
  readonly partnerId: PartnerId;
  readonly id: EndpointId;
  readonly kind: EndpointKind;
  readonly target: string;
  readonly state: CircuitState;
  readonly failures: number;
  readonly lastReason: FailureReason | null;
  readonly openedAt: Date | null;
  /** While it is open: the time of the next probe. */
  readonly probeAt: Date | null;
  readonly probes: number;
  readonly updatedAt: Date;
}

export interface EndpointSearch {
  readonly partnerId?: PartnerId;
  readonly state?: CircuitState;
  /** The last one of the previous page: the newest come first. */
  readonly after?: EndpointId;
  readonly limit: number;
}

/** The same circuits, for the APIs. */
export interface EndpointStore {
  /** Lists endpoints that have failed at some time, the newest first. One that never failed has no row. */
  list(search: EndpointSearch): Promise<Page<Endpoint>>;
  /**
   * Closes it on a person's request, with its event, and notifies its owner. Undefined if there is none, or it belongs
   * to another partner; a closed one stays unchanged.
   */
  close(id: EndpointId, partnerId?: PartnerId): Promise<Endpoint | undefined>;
}
