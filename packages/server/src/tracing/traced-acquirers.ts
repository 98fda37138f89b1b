import type { Acquirer, Acquirers } from "../acquirer/acquirer.ts";
import { settingsName } from "../acquirer/registered/registry.ts";
import type { Traces } from "./traces.ts";

/** The same acquirers, each exchange with a span. */
export function tracedAcquirers(acquirers: Acquirers, traces: Traces): Acquirers {
  return {
    of: (name) => traced(name || settingsName, acquirers.of(name), traces),
    has: (name) => acquirers.has(name),
    names: () => acquirers.names(),
  };
}

function traced(name: string, acquirer: Acquirer, traces: Traces): Acquirer {
  return {
    approvals: acquirer.approvals,
    wantsCards: acquirer.wantsCards === true,
    reversalMarginMs: acquirer.reversalMarginMs,
    site: () => acquirer.site?.(),
    ask: (message, options) => traces.ask(name, acquirer, message, options),
    refusesToken: (token) => acquirer.refusesToken(token),
    close: () => acquirer.close(),
  };
}
