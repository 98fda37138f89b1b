import { systemClock } from "../../clock.ts";
import { CachedPartners } from "../../partners/directory.ts";
import type { MasterKey } from "../../partners/master-key.ts";
import { PartnerRegistry, type RegistryParts } from "../../partners/registry.ts";
import { defaultSettings } from "../../partners/settings/settings.ts";
import type { Database } from "../database/database.ts";
import { postgresTerminals } from "../terminals/terminals.ts";
import { postgresPartners } from "./partners.ts";

export const sampleInput = { name: "A", callbackAddresses: ["192.0.2.0/24"], callingAddresses: [] };

interface RegistryOptions extends Partial<RegistryParts> {
  /** Of the directory. Default: ignored. */
  readonly onError?: (error: unknown) => void;
}

/** What registers partners, and the directory that finds them, which hears of each change. */
export function openRegistry(connections: Database, masterKey: MasterKey, options: RegistryOptions = {}) {
  const { onError = () => undefined, ...parts } = options;
  const partners = postgresPartners(connections);
  const directory = new CachedPartners({
    store: partners,
    masterKey,
    defaults: defaultSettings,
    clock: systemClock,
    onError,
  });
  const registry = new PartnerRegistry({
    partners,
    terminals: postgresTerminals(connections.homes),
    masterKey,
    defaults: defaultSettings,
    rules: { sandbox: true },
    preAuthDays: 30,
    historyDays: 90,
    cardNumberProblem: () => undefined,
    changed: (id) => directory.invalidate(id),
    ...parts,
  });
  return { directory, registry };
}
