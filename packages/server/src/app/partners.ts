import type { Mail, Mailer } from "../alerts/mail.ts";
import { PartnerMessages, type PartnerMessagesParts } from "../callbacks/partner-messages.ts";
import { systemClock } from "../clock.ts";
import { cardNumberProblem } from "../commands/requests/rules.ts";
import { ContentMac } from "../delivery/attempt/content-mac.ts";
import type { PartnerId } from "../ids.ts";
import type { Troubles } from "../notifications/trouble.ts";
import { auditIn, byService, entryText } from "../operators/audit.ts";
import { ApiKeys } from "../partners/api-keys.ts";
import { PartnerArchive } from "../partners/archive.ts";
import { CachedPartners } from "../partners/directory.ts";
import { loadOrCreateKey, type MasterKey, requireFittingMasterKey } from "../partners/master-key.ts";
import { PartnerRegistry } from "../partners/registry.ts";
import { SealBudget } from "../partners/seal-budget.ts";
import { defaultSettings } from "../partners/settings/settings.ts";
import { ownVersion } from "../programs/process.ts";
import { postgresProposals } from "../store/operators/proposals.ts";
import { RowSeals } from "../store/operators/row-seals.ts";
import { postgresPartnerArchive } from "../store/partners/archive.ts";
import { postgresPartnerMessages } from "../store/partners/messages.ts";
import { postgresPartners } from "../store/partners/partners.ts";
import { isRegisteredDevice, postgresTerminals } from "../store/terminals/terminals.ts";
import { auditKeyVersions, openAuditKeys, sealedAudit } from "./audit-keys.ts";
import type { Infrastructure } from "./infrastructure.ts";
import { mailServerOf } from "./observation/alerts.ts";

export type PartnerParts = Awaited<ReturnType<typeof wirePartners>>;

/** Wires partners, their settings and their keys. Rejects if the master key is another one. */
export async function wirePartners(infrastructure: Infrastructure, masterKey: MasterKey) {
  const { database, config, log, sandbox, alerts, closing, warn } = infrastructure;
  const values = postgresPartners(database);
  await requireFittingMasterKey(masterKey, values);
  const contents = new ContentMac(
    await loadOrCreateKey(masterKey, values, "notification contents"),
    ({ partnerId, id }) => alerts.record({ kind: "content_changed", partnerId, subjectId: id, detail: {} }),
  );
  const auditKeys = await openAuditKeys(masterKey, values);
  const auditStore = sealedAudit(database, auditKeys);
  const audit = auditIn(auditStore, (error, { actor, action, subject }) => {
    log.error({ err: error, actor, action, subject }, "an action could not be audited");
    void alerts.record({ kind: "audit_failed", partnerId: null, subjectId: null, detail: { action, subject } });
  });
  const rowSeals = new RowSeals({
    pool: database.pool,
    keys: auditKeys,
    asService: (action, run) =>
      audit.during(
        async (subject) => ({ atMs: systemClock.nowMs(), ...byService, action, subject, before: "", after: "" }),
        () => undefined,
        run,
      ),
    version: ownVersion(),
    onChanged: ({ table, id }) => {
      log.error({ table, id }, "a row that grants rights was changed in the database: it is refused");
      void alerts.record({ kind: "row_changed", partnerId: null, subjectId: id, detail: { table } });
    },
    onSealed: (atMs) => contents.requiredSince(atMs),
  });
  await rowSeals.sealDatabase().catch(warn("the database could not be sealed: it is tried again every hour"));
  const store = postgresPartners(database, rowSeals);
  const terminals = postgresTerminals(database.homes);
  // In production only the operator registers a terminal of the acquirer.
  const terminalsOf = sandbox ? ("open" as const) : ("registered" as const);
  const defaults = { ...defaultSettings, terminals: terminalsOf, retry: config.retrySeconds };
  const directory = new CachedPartners({
    store,
    masterKey,
    defaults,
    clock: systemClock,
    storedAs: (hash) => rowSeals.storedAs(hash),
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
    sendsMail: config.alertMailUrl !== null,
    cardNumberProblem,
    changed: (id) => directory.invalidate(id),
  });
  const archive = new PartnerArchive({
    registry,
    store: postgresPartnerArchive(database),
    changed: (id) => directory.invalidate(id),
  });
  const apiKeys = new ApiKeys(store, systemClock, (id) => directory.invalidate(id));
  const seals = new SealBudget(store, ({ partnerId, keyId, seals: count }) =>
    alerts.record({ kind: "key_limit", partnerId, subjectId: keyId, detail: { seals: count } }),
  );
  const bodyKey = await loadOrCreateKey(masterKey, store, "request bodies");
  const sessionKey = await loadOrCreateKey(masterKey, store, "console sessions");
  const proofKey = await loadOrCreateKey(masterKey, store, "proofs of delivery");
  const cardKey = await loadOrCreateKey(masterKey, store, "cards");
  const acquirerSessionKey = await loadOrCreateKey(masterKey, store, "acquirer sessions");
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
    audit,
    auditStore,
    proposals: postgresProposals(database.pool, { keys: auditKeys, entryText }),
    learnAuditKeys: async () => auditKeys.learn(await auditKeyVersions(masterKey, values)),
    rowSeals,
    cardKey,
    acquirerSessionKey,
    terminals,
    isRegisteredDevice: (partnerId: PartnerId, deviceId: string) =>
      isRegisteredDevice(database.homes, partnerId, deviceId),
  };
}

/** Partners in trouble that are looked at. */
const partnersMax = 1_000;

/** Messages to partners, by the mail server that alerts use, and by the rules of callbacks. */
export function wirePartnerMessages(
  { config, database, egressProxy, alerts, log, closing }: Infrastructure,
  {
    troubles,
    ...parts
  }: Pick<PartnerMessagesParts, "stateOf" | "findPartner" | "connect"> & { readonly troubles: Troubles },
): Pick<PartnerMessages, "start" | "stop"> {
  const mailServer = mailServerOf(config, egressProxy);
  let mailer: Promise<Mailer> | undefined;
  const messages = new PartnerMessages({
    ...parts,
    troubles: { all: () => troubles.all(partnersMax), of: (id) => troubles.of(id) },
    store: postgresPartnerMessages(database.pool),
    async mail(mail: Mail, signal) {
      if (mailServer === undefined) return "PAYBELL_ALERT_MAIL_URL is not set any more";
      // Loaded only when needed, as for alerts.
      mailer ??= import("../alerts/mail.ts").then((module) => new module.Mailer(mailServer));
      return await (await mailer).send(mail, signal);
    },
    events: alerts,
    clock: systemClock,
    log,
  });
  const stop = async () => {
    await messages.stop();
    (await mailer)?.close();
  };
  closing.push(stop);
  return { start: () => messages.start(), stop };
}
