import { createHash, type KeyObject } from "node:crypto";
import type { Acquirer } from "../acquirer/acquirer.ts";
import { Iso8583Acquirer, type Iso8583Options } from "../acquirer/iso8583/iso8583.ts";
import type { MacKeyStore } from "../acquirer/iso8583/key-exchange.ts";
import type { HostsOwn, LinkEvent } from "../acquirer/iso8583/link/link.ts";
import { shownFieldsOf } from "../acquirer/iso8583/mapping.ts";
import { maskedLines, type ShownFields } from "../acquirer/iso8583/message/masking.ts";
import { matchProblems, oneSessionOf, readProfile } from "../acquirer/iso8583/profile/read.ts";
import type { SignOffStore } from "../acquirer/iso8583/sign-offs.ts";
import { OpenAcquirers, type Replaced } from "../acquirer/registered/open-acquirers.ts";
import { AcquirerRegistry, settingsName } from "../acquirer/registered/registry.ts";
import { InstanceRpc } from "../acquirer/session/instance-rpc.ts";
import { OneSession, type SessionHolder } from "../acquirer/session/one-session.ts";
import { SimulatedAcquirer } from "../acquirer/simulator/simulator.ts";
import { systemClock } from "../clock.ts";
import type { Config } from "../config/config.ts";
import { readNamedFile, readTlsFiles } from "../config/config.ts";
import type { LeaseHolder } from "../leases/lease.ts";
import { type MasterKey, openValue, sealValue } from "../partners/master-key.ts";
import { PostgresAcquirerSessions } from "../store/acquirer-sessions.ts";
import { openDatabase } from "../store/database/database.ts";
import { PostgresAcquirers } from "../store/registered-acquirers.ts";
import type { EventSink } from "../telemetry/events.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Infrastructure } from "./infrastructure.ts";

export type HostOptions = Omit<Iso8583Options, "onEvent" | "noteAsked" | "connectsLater" | "earlierTimeoutMs">;

export interface NamedAcquirer {
  /** Null: there is none, and commands are refused. A link is opened with the service, by its options. */
  readonly acquirer: Acquirer | HostOptions | null;
  /** Its name in /readyz and the log. */
  readonly name: string;
}

/**
 * The configured acquirer.
 *
 * @throws ProfileError naming every problem of the host's profile; ConfigError if a file cannot be read
 */
export async function configuredAcquirer(config: Config, log: Log): Promise<NamedAcquirer> {
  if (config.acquirer === null) {
    log.warn("there is no acquirer: commands are refused, reports are accepted");
    return { acquirer: null, name: "none: commands are refused, reports are accepted" };
  }
  if (config.acquirer === "simulator") {
    log.warn("commands are answered by the simulated acquirer: no card is charged");
    return { acquirer: simulator(config), name: simulatorName(config) };
  }
  const options = await iso8583Options(config);
  return { acquirer: options, name: `iso8583, ${options.profile.name}` };
}

export interface AcquirersOptions {
  readonly ofSettings: NamedAcquirer["acquirer"];
  readonly masterKey: MasterKey;
  /** The key under which instances forward messages to each other. */
  readonly sessionKey: KeyObject;
  readonly lease: Pick<LeaseHolder, "current">;
}

/** The acquirers that commands go to: the one of the settings, and the registered ones. */
export async function openAcquirers(
  {
    database,
    config,
    log,
    metrics,
    alerts,
    warn,
  }: Pick<Infrastructure, "database" | "config" | "log" | "metrics" | "alerts" | "warn">,
  { ofSettings, masterKey, sessionKey, lease }: AcquirersOptions,
) {
  const store = new PostgresAcquirers(database);
  const sessions = new PostgresAcquirerSessions(database);
  const registry = new AcquirerRegistry(store, masterKey);
  const rpc = new InstanceRpc({
    publish: (payload, isWanted) => sessions.publish(payload, isWanted),
    seal: (plain) => sealValue(sessionKey, plain, sessionContext),
    open: (sealed) => openValue(sessionKey, sealed, sessionContext),
    onTrouble: warn("a message could not be passed on between instances"),
  });
  const open = (name: string, options: HostOptions, replaced?: Replaced): Acquirer => {
    const shown = shownFieldsOf(options.profile);
    const own = name === "" ? log : log.child({ acquirer: name });
    const keyStore = macKeyStore(store, masterKey, name, options.macKey);
    const onEvent = (event: LinkEvent) => {
      logEvent(event, shown, own);
      recordKey(event, name || settingsName, { metrics, events: alerts });
    };
    const noteAsked = (asked: HostsOwn) => recordAsked(asked, name || settingsName, alerts);
    const { sessions: allowed } = options.profile.network;
    const signOffs = sharedSignOffs(store, name, async () => {
      return allowed === "each" && (replaced?.staysInUse() ?? (await store.isUsedByOthers(lease.current())));
    });
    const earlierTimeoutMs = config.acquirerTimeoutMs;
    const linked = { ...options, macKeyStore: keyStore, signOffs, onEvent, noteAsked, earlierTimeoutMs };
    const problems = matchProblems(options.profile);
    if (problems.length > 0) {
      const detail = { acquirer: name || settingsName, problems };
      void alerts.record({ kind: "profile_ambiguous", partnerId: null, subjectId: null, detail });
    }
    if (options.profile.mac !== undefined) {
      for (const result of ["taken", "refused"]) metrics.macKeys.inc({ acquirer: name || settingsName, result }, 0);
    }
    if (allowed === "each") return new Iso8583Acquirer(linked);
    return new OneSession({
      name,
      open: () => new Iso8583Acquirer({ ...linked, connectsLater: true }),
      store: sessions,
      rpc,
      lease: () => lease.current(),
      session: oneSessionOf(options.profile),
      after: replaced?.ended,
      onTrouble: warn("the session with an acquirer's host could not be maintained"),
    });
  };
  const isLink = ofSettings !== null && "profile" in ofSettings;
  // Those that came under another one end, as when another key is registered.
  if (isLink) await store.dropMacKeysBut("", sealedMacKeyName("", ofSettings.macKey));
  const acquirers = new OpenAcquirers({
    ofSettings: isLink ? open("", ofSettings) : ofSettings,
    store,
    open: (stored, replaced) => open(stored.name, { ...registry.linkOptions(stored), clock: systemClock }, replaced),
    drainMs: config.acquirerTimeoutMs,
    onTrouble: warn("a registered acquirer could not be opened"),
  });
  return { acquirers, registry, rpc };
}

const sessionContext = "paybell acquirer session";

/** The options of the link: its profile and its keys, read from their files. */
export async function iso8583Options(config: Config): Promise<HostOptions> {
  const { acquirerProfile, acquirerHosts: hosts, acquirerMacKey, acquirerKeyEncryptionKey } = config;
  if (acquirerProfile === null) throw new Error("PAYBELL_ACQUIRER_PROFILE is required.");
  const profile = readProfile((await readNamedFile("PAYBELL_ACQUIRER_PROFILE", acquirerProfile)).toString());
  const { acquirerCaFile: ca, acquirerCertificateFile: certificate, acquirerKeyFile: key } = config;
  const isEncrypted = config.acquirerTls !== "off";
  const tls = isEncrypted ? await readTlsFiles("PAYBELL_ACQUIRER", { ca, certificate, key }) : undefined;
  const keyEncryptionKey = acquirerKeyEncryptionKey ?? undefined;
  return { profile, hosts, tls, macKey: acquirerMacKey ?? undefined, keyEncryptionKey, clock: systemClock };
}

/** A key of the MACs that was taken up, or could not be. */
function recordKey(
  event: LinkEvent,
  acquirer: string,
  { metrics, events }: { readonly metrics: Pick<Metrics, "macKeys">; readonly events: EventSink },
): void {
  if (event.kind !== "key" && event.kind !== "key_refused") return;
  const isTaken = event.kind === "key";
  const { host, detail } = event;
  metrics.macKeys.inc({ acquirer, result: isTaken ? "taken" : "refused" });
  const kind = isTaken ? "mac_key_taken" : "mac_key_refused";
  events.record({ kind, partnerId: null, subjectId: null, detail: { acquirer, host, detail } });
}

const askedKinds = {
  signOn: "acquirer_signed_on",
  signOff: "acquirer_signed_off",
  cutover: "acquirer_cutover",
  advice: "acquirer_advice",
  unknown: "acquirer_request_unknown",
} as const;

/** The fields of a host's own message that an event shows: they hold no card data. */
const askedFields = {
  processingCode: 3,
  amount: 4,
  traceNo: 11,
  settlementDate: 15,
  functionCode: 24,
  refId: 37,
  approveCode: 38,
  responseCode: 39,
  tid: 41,
  mid: 42,
  currency: 49,
  networkCode: 70,
  original: 90,
} as const;

/** Something that the host did by itself, and of which the operator should know. @throws Error if it is not durable */
async function recordAsked(
  { host, means, message }: HostsOwn,
  acquirer: string,
  events: Pick<Infrastructure["alerts"], "isRecorded">,
): Promise<void> {
  if (means === "key" || means === "echo" || means === "other") return;
  const shown = Object.entries(askedFields).flatMap(([name, field]) => {
    // The host may send anything, such as a NUL, which the database does not take.
    const text =
      message.fields
        .get(field)
        ?.replace(/[^ -~]/g, "?")
        .trim() ?? "";
    return text === "" ? [] : [[name, text] as const];
  });
  const detail = { acquirer, host, mti: message.mti, ...Object.fromEntries(shown) };
  const isDurable = await events.isRecorded({ kind: askedKinds[means], partnerId: null, subjectId: null, detail });
  if (!isDurable) throw new Error("its event could not be recorded");
}

function logEvent(event: LinkEvent, shown: ShownFields, log: Log): void {
  const { host } = event;
  switch (event.kind) {
    case "sent":
    case "received":
      if (!log.isLevelEnabled("trace")) return;
      log.trace({ host, message: maskedLines(event.message, shown) }, `acquirer: ${event.kind}`);
      return;
    case "up":
      log.info({ host }, "acquirer: signed on");
      return;
    case "unwritable":
      log.error({ host, detail: event.detail }, "acquirer: a message cannot be written by the host's profile");
      return;
    case "asked":
      log.info({ host, message: maskedLines(event.message, shown) }, `acquirer: ${event.detail}`);
      return;
    case "key":
      log.info({ host, detail: event.detail }, "acquirer: a new MAC key is in use");
      return;
    case "key_refused":
      log.error({ host, detail: event.detail }, "acquirer: a new MAC key could not be taken up");
      return;
    case "down":
      log.warn({ host, detail: event.detail }, "acquirer: the connection ended");
      return;
    case "unusable":
      log.warn({ host, detail: event.detail }, "acquirer: the host cannot be used");
      return;
    case "ignored": {
      // An answer for a dead process shows what became of its request.
      const message = event.message && maskedLines(event.message, shown);
      log.warn({ host, detail: event.detail, message }, "acquirer: a message was ignored");
    }
  }
}

/**
 * The MAC key of an acquirer that came over its link, in the database under the master key. It belongs to
 * the key that was registered at the time: registering another one starts again from that.
 */
function macKeyStore(
  store: Pick<PostgresAcquirers, "readMacKey" | "replaceMacKey">,
  masterKey: MasterKey,
  name: string,
  registered: Buffer = Buffer.alloc(0),
): MacKeyStore {
  const sealedAs = sealedMacKeyName(name, registered);
  const seal = (key: Buffer) => masterKey.sealNamed(key, sealedAs);
  let before: Buffer | undefined;
  // Sealed, each is unlike every other: the same key of another instance is not put back.
  let written: Buffer = Buffer.alloc(0);
  /** What could not be put back yet: links end when the lease does, and this stays. */
  let unused: Buffer | undefined;
  const putBack = async () => {
    const taken = unused;
    if (taken === undefined) return;
    await store.replaceMacKey(name, sealedAs, taken, before ?? seal(registered));
    if (unused === taken) unused = undefined;
  };
  return {
    taking: Promise.resolve(),
    async read() {
      await putBack();
      const sealed = await store.readMacKey(sealedAs);
      return sealed && masterKey.openNamed(sealed, sealedAs);
    },
    async keep(key) {
      await putBack();
      written = seal(key);
      do before = await store.readMacKey(sealedAs);
      while (!(await store.replaceMacKey(name, sealedAs, before, written)));
    },
    async putBack() {
      unused = written;
      await putBack();
    },
  };
}

function sealedMacKeyName(name: string, registered: Buffer = Buffer.alloc(0)): string {
  return `acquirer-key ${name} ${createHash("sha256").update(registered).digest("hex").slice(0, 8)}`;
}

/** The sign-offs of an acquirer's hosts, in the database. */
function sharedSignOffs(
  store: Pick<PostgresAcquirers, "signedOff" | "noteSignOff">,
  name: string,
  isUsedByOthers: SignOffStore["isUsedByOthers"],
): SignOffStore {
  return {
    read: () => store.signedOff(name),
    note: (host, isSignedOff) => store.noteSignOff(name, host, isSignedOff),
    isUsedByOthers,
  };
}

/** The simulated acquirer as configured. It answers commands while there is no link to a host. */
export function simulator({
  simulatorLatencyMs: latencyMs,
  simulatorLateByMs: lateByMs,
  simulatorOutage: outage,
}: Pick<Config, "simulatorLatencyMs" | "simulatorLateByMs" | "simulatorOutage">): SimulatedAcquirer {
  const acquirer = new SimulatedAcquirer({ latencyMs, lateByMs });
  if (outage !== "none") acquirer.outage(outage);
  return acquirer;
}

/** Its name in /readyz. */
function simulatorName({ simulatorOutage }: Pick<Config, "simulatorOutage">): string {
  const outage = simulatorOutage === "none" ? "" : ` (outage: ${simulatorOutage})`;
  return `simulator${outage}: no card is charged`;
}

/** The links of acquirers, for a command that runs beside the service. The empty name: the acquirer of the settings. */
export interface AcquirerLinks {
  names(): Promise<readonly string[]>;
  /** The options for opening the link; undefined: no acquirer is registered by this name. */
  registered(name: string): Promise<HostOptions | undefined>;
  /** The options with what the instances share of its hosts: MAC keys that came over the link, and sign-offs. */
  withShared(name: string, options: HostOptions): HostOptions;
  /** The instance with the one session that the host allows. */
  sessionHolder(name: string): Promise<SessionHolder>;
}

export async function withAcquirerLinks<Result>(
  databaseUrl: string,
  masterKey: MasterKey,
  use: (links: AcquirerLinks) => Promise<Result>,
): Promise<Result> {
  const database = openDatabase(databaseUrl, { connectionsMax: 2, onIdleError: () => undefined });
  const store = new PostgresAcquirers(database);
  const registry = new AcquirerRegistry(store, masterKey);
  const sessions = new PostgresAcquirerSessions(database);
  try {
    return await use({
      names: async () => [...(await store.versions()).keys()].sort(),
      async registered(name) {
        const stored = await store.find(name);
        return stored && { ...registry.linkOptions(stored), clock: systemClock };
      },
      withShared: (name, options) => ({
        ...options,
        macKeyStore: macKeyStore(store, masterKey, name, options.macKey),
        signOffs: sharedSignOffs(store, name, () => store.isUsedByOthers(undefined)),
      }),
      sessionHolder: (name) => sessions.holder(name),
    });
  } finally {
    await database.close();
  }
}
