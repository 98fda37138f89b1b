import type { Acquirer, AcquirerHealth } from "../acquirer/acquirer.ts";
import type { Acquirers } from "../acquirer/acquirers.ts";
import { settingsName } from "../acquirer/registered/registration.ts";
import type { EventSink } from "../events.ts";

/**
 * The acquirers' status for /readyz, by name. A link that is down is a warning: reports, deliveries and queries
 * continue.
 *
 * @param ofSettings the name of the acquirer of the settings
 */
export function acquirerDetails(ofSettings: string, acquirers: Acquirers): ReadonlyMap<string, string> {
  const registered = acquirers.names().filter((name) => name !== "");
  return new Map([
    ["acquirer", detailOf(ofSettings, acquirers.of(""))],
    ...registered.map((name) => [`acquirer ${name}`, detailOf("iso8583", acquirers.of(name))] as const),
  ]);
}

function detailOf(name: string, acquirer: Acquirer): string {
  const health = acquirer.health?.();
  if (health === undefined) return name;
  return health.ok ? `${name}: ${health.detail}` : `warning: ${name}: ${health.detail}`;
}

/** The state of a registered acquirer's link. An instance that runs no commands has none open. */
export function registeredHealth(name: string, acquirers: Acquirers): AcquirerHealth {
  const closed = { ok: false, detail: "is not open on this instance" };
  return acquirers.of(name).health?.() ?? closed;
}

/** The acquirer of the settings. One without a link, such as the simulator, can always be asked. */
export function settingsHealth(
  kind: string,
  acquirers: Acquirers,
): { readonly kind: string; readonly health: AcquirerHealth } {
  const ok = acquirers.has("");
  const health = acquirers.of("").health?.() ?? {
    ok,
    detail: ok ? "needs no link to a host" : "none is set: commands need a registered one",
  };
  return { kind, health };
}

/** Whether each acquirer can be asked now, by the name that metrics and events use. */
export function acquirerLinks(acquirers: Acquirers): ReadonlyMap<string, boolean> {
  const names = acquirers.names();
  return new Map(names.map((name) => [name || settingsName, acquirers.of(name).health?.().ok !== false]));
}

interface Watched {
  /** The health reported last; initially good. */
  told: boolean;
  seen: boolean;
}

/**
 * Alerts the operator when no host of an acquirer can be asked any more, and when one can again. It checks
 * periodically, and reports a state seen twice: a connection that is restored at once needs no alert.
 */
export class AcquirerWatch {
  readonly #acquirers: Acquirers;
  readonly #events: EventSink;
  readonly #watched = new Map<string, Watched>();

  constructor(acquirers: Acquirers, events: EventSink) {
    this.#acquirers = acquirers;
    this.#events = events;
  }

  check(): void {
    const names = this.#acquirers.names();
    for (const gone of [...this.#watched.keys()].filter((name) => !names.includes(name))) this.#watched.delete(gone);
    for (const name of names) this.#checkOne(name);
  }

  #checkOne(name: string): void {
    const health = this.#acquirers.of(name).health?.();
    if (health === undefined) return;
    const watched = this.#watched.get(name) ?? { told: true, seen: true };
    const isNews = health.ok === watched.seen && health.ok !== watched.told;
    this.#watched.set(name, { told: isNews ? health.ok : watched.told, seen: health.ok });
    if (!isNews) return;
    const detail = { acquirer: name || settingsName, detail: health.detail };
    const kind = health.ok ? "acquirer_up" : "acquirer_down";
    this.#events.record({ kind, partnerId: null, subjectId: null, detail });
  }
}
