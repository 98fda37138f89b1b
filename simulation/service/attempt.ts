import type { AttemptOptions, AttemptResult, MakeAttempt } from "../../packages/server/src/delivery/attempt/attempt.ts";
import { nextAttempt } from "../../packages/server/src/delivery/attempt/schedule.ts";
import type { Attempt, Delivery } from "../../packages/server/src/delivery/delivery.ts";
import { callbackUrlOf, isRegistered } from "../../packages/server/src/notification.ts";
import type { Partner } from "../../packages/server/src/partners/partner.ts";
import type { SimulationContext } from "../context.ts";
import { SimulatedFailure } from "../database/database.ts";
import type { NotificationStart } from "../database/tables.ts";
import { type Reception, refusal } from "../outside/merchant.ts";
import type { Instance } from "./instance.ts";

const postponeMs = 1_000;

interface Posting {
  readonly delivery: Delivery;
  readonly partner: Partner;
  readonly options: AttemptOptions;
  readonly url: string;
  readonly startedMs: number;
  readonly resolve: (attempted: AttemptResult | { readonly postponeMs: number }) => void;
}

/** Attempts of one worker: made ready, written, and answered by simulated endpoints. */
export class SimulatedAttempts {
  readonly #context: SimulationContext;
  readonly #sender: Instance;
  readonly #onWire = new Map<Posting, NotificationStart>();

  constructor(context: SimulationContext, sender: Instance) {
    this.#context = context;
    this.#sender = sender;
  }

  /** Ends what is on the wire. */
  abort(): void {
    for (const posting of [...this.#onWire.keys()]) this.#end(posting, refusal);
  }

  readonly attempt: MakeAttempt = (delivery, partner, options) =>
    new Promise((resolve, reject) => {
      const { world, isStormy } = this.#context;
      if (isStormy && world.random.chance(0.002)) {
        this.#context.checks.unhandled(delivery);
        return reject(new SimulatedFailure("it cannot be rendered"));
      }
      const url = callbackUrlOf(delivery, partner.settings) ?? "";
      const { monotonicMs } = this.#sender.loop.clock;
      const posting = { delivery, partner, options, url, startedMs: monotonicMs(), resolve };
      this.#context.checks.attemptBegins(this.#sender, delivery, url, isRegistered(partner.settings, url));
      // A settlement is sealed in a loop of its own.
      const readyMs = world.random.chance(0.02) ? world.random.between(1, 400) : world.random.between(0.05, 0.6);
      const begunMs = world.nowMs;
      world.agenda.after(readyMs, () => this.#sender.loop.enter(() => this.#write(posting, begunMs)));
    });

  #write(posting: Posting, begunMs: number): void {
    const { world, checks, tables } = this.#context;
    const { delivery, options, url, startedMs, resolve } = posting;
    if (!options.mayWrite() || world.random.chance(0.003)) {
      checks.starts.attemptEnds(this.#sender, delivery, url);
      resolve({ postponeMs });
      return;
    }
    this.#onWire.set(posting, checks.starts.firstByte(this.#sender, delivery, options, begunMs));
    const reception = tables.merchantOf(delivery.partnerId)?.endpointAt(url)?.receive(url) ?? refusal;
    if (reception.isAccepted) tables.notifications.get(delivery.id)?.acceptedRounds.add(delivery.round);
    const { loop } = this.#sender;
    const leftMs = this.#context.plan.attemptTimeoutMs - (loop.clock.monotonicMs() - startedMs);
    if (reception.afterMs >= leftMs) {
      const timeout = { ...refusal, reason: "timeout" } as const;
      loop.timers.after(Math.max(1, leftMs), () => this.#end(posting, timeout));
    } else {
      world.agenda.after(reception.afterMs, () => loop.enter(() => this.#end(posting, reception)));
    }
  }

  #end(posting: Posting, answer: Reception): void {
    const start = this.#onWire.get(posting);
    if (start === undefined) return;
    this.#onWire.delete(posting);
    start.isEnded = true;
    const { delivery, partner, url, startedMs, resolve } = posting;
    this.#context.checks.starts.attemptEnds(this.#sender, delivery, url);
    const { clock } = this.#sender.loop;
    const attempt: Attempt = {
      startedAtMs: clock.nowMs(),
      durationMs: clock.monotonicMs() - startedMs,
      url,
      address: null,
      httpStatus: answer.status,
      reason: answer.reason,
      detail: null,
      answer: null,
      keyId: null,
    };
    const { retryAfterMs } = answer;
    resolve({
      attempt,
      next: this.#next(delivery, partner, url, answer),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    });
  }

  #next(delivery: Delivery, partner: Partner, url: string, { reason, retryAfterMs }: Reception): AttemptResult["next"] {
    if (reason === null) return { kind: "accepted" };
    const { database, world } = this.#context;
    const isFinal = reason === "gone" && !isRegistered(partner.settings, url);
    return nextAttempt(
      partner,
      delivery,
      { nowMs: database.nowUs() / 1_000, retryAfterMs, isFinal },
      world.random.next(),
    );
  }
}
