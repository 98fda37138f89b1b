import { systemClock } from "../clock.ts";
import { cardNumberProblem } from "../commands/card-number.ts";
import { ContentMac } from "../delivery/content-mac.ts";
import { ApiKeys } from "../partners/api-keys.ts";
import { PartnerArchive } from "../partners/archive.ts";
import { CachedPartners } from "../partners/directory.ts";
import { keptKey, type MasterKey, requireFittingMasterKey } from "../partners/master-key.ts";
import { PartnerRegistry } from "../partners/registry.ts";
import { SealBudget } from "../partners/seal-budget.ts";
import { defaultSettings } from "../partners/settings.ts";
import { PostgresPartnerArchive } from "../store/partners/archive.ts";
import { PostgresPartners } from "../store/partners/partners.ts";
import { PostgresTerminals } from "../store/terminals/terminals.ts";
import type { Infrastructure } from "./infrastructure.ts";

export type PartnerParts = Awaited<ReturnType<typeof wirePartners>>;

/** Wires partners, their settings and their keys. Rejects if the master key is another one. */
export async function wirePartners(infrastructure: Infrastructure, masterKey: MasterKey) {
  const { database, config, sandbox, alerts, closing, warn } = infrastructure;
  const store = new PostgresPartners(database);
  await requireFittingMasterKey(masterKey, store);
  const terminals = new PostgresTerminals(database.homes);
  // In production only the operator registers a terminal of the acquirer.
  const terminalsOf = sandbox ? ("open" as const) : ("registered" as const);
  const defaults = { ...defaultSettings, terminals: terminalsOf, retry: config.retrySeconds };
  const directory = new CachedPartners({
    store,
    masterKey,
    defaults,
    clock: systemClock,
    onError: warn("partners could not be refreshed"),
  });
  closing.push(() => directory.stop());
  const registry = new PartnerRegistry({
    partners: store,
    terminals,
    masterKey,
    defaults,
    rules: { sandbox },
    preAuthDays: config.preAuthDays,
    historyDays: config.historyDays,
    cardNumberProblem,
    changed: (id) => directory.invalidate(id),
  });
  const archive = new PartnerArchive({
    registry,
    store: new PostgresPartnerArchive(database),
    changed: (id) => directory.invalidate(id),
  });
  const apiKeys = new ApiKeys(store, systemClock, (id) => directory.invalidate(id));
  const seals = new SealBudget(store, ({ partnerId, keyId, seals: count }) =>
    alerts.record({ kind: "key_limit", partnerId, subjectId: keyId, detail: { seals: count } }),
  );
  const bodyKey = await keptKey(masterKey, store, "request bodies");
  const sessionKey = await keptKey(masterKey, store, "console sessions");
  const proofKey = await keptKey(masterKey, store, "proofs of delivery");
  const contents = new ContentMac(await keptKey(masterKey, store, "notification contents"), ({ partnerId, id }) =>
    alerts.record({ kind: "content_changed", partnerId, subjectId: id, detail: {} }),
  );
  const cardKey = await keptKey(masterKey, store, "cards");
  const acquirerSessionKey = await keptKey(masterKey, store, "acquirer sessions");
  return {
    directory,
    registry,
    archive,
    apiKeys,
    seals,
    bodyKey,
    sessionKey,
    proofKey,
    contents,
    cardKey,
    acquirerSessionKey,
    terminals,
    isRegisteredDevice: terminals.isRegisteredDevice.bind(terminals),
  };
}
