import type { Acquirer } from "../acquirer/acquirer.ts";
import type { EventSink } from "../events.ts";

/** What /readyz says of it. A link that is down is a warning: reports, deliveries and the partners' questions go on. */
export function acquirerDetail(name: string, acquirer: Acquirer | null): string {
  const health = acquirer?.health?.();
  if (health === undefined) return name;
  return health.ok ? `${name}: ${health.detail}` : `warning: ${name}: ${health.detail}`;
}

/**
 * Tells the operator when no host can be asked any more, and when one can again. It looks now and then, and tells what
 * it has seen twice: a connection that is made anew at once is nothing to wake anybody for.
 */
export class AcquirerWatch {
  readonly #acquirer: Acquirer | null;
  readonly #events: EventSink;
  #told = true;
  #seen = true;

  constructor(acquirer: Acquirer | null, events: EventSink) {
    this.#acquirer = acquirer;
    this.#events = events;
  }

  check(): void {
    const health = this.#acquirer?.health?.();
    if (health === undefined) return;
    const isNews = health.ok === this.#seen && health.ok !== this.#told;
    this.#seen = health.ok;
    if (!isNews) return;
    this.#told = health.ok;
    const { detail } = health;
    const kind = health.ok ? "acquirer_up" : "acquirer_down";
    this.#events.record({ kind, partnerId: null, subjectId: null, detail: { detail } });
  }
}
