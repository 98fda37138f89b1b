import { readFile } from "node:fs/promises";
import type { Acquirer } from "../acquirer/acquirer.ts";
import { Iso8583Acquirer, type Iso8583Options } from "../acquirer/iso8583/iso8583.ts";
import type { LinkEvent } from "../acquirer/iso8583/link/link.ts";
import { maskedLines } from "../acquirer/iso8583/message/masking.ts";
import { readProfile } from "../acquirer/iso8583/profile/read.ts";
import { OpenAcquirers } from "../acquirer/registered/open-acquirers.ts";
import { AcquirerRegistry } from "../acquirer/registered/registry.ts";
import { systemClock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Log } from "../log.ts";
import type { MasterKey } from "../partners/master-key.ts";
import { PostgresAcquirers } from "../store/acquirers.ts";
import type { Infrastructure } from "./infrastructure.ts";
import { simulator, simulatorName } from "./simulator.ts";

export interface NamedAcquirer {
  /** Null: commands are refused. */
  readonly acquirer: Acquirer | null;
  /** What /readyz and the log call it. */
  readonly name: string;
}

/**
 * Who answers commands, as it is configured.
 *
 * @throws ProfileError naming every problem of the host's profile; Error when a file cannot be read
 */
export async function openAcquirer(config: Config, log: Log): Promise<NamedAcquirer> {
  if (config.acquirer === null) {
    log.warn("there is no acquirer: commands are refused, reports are taken");
    return { acquirer: null, name: "none: commands are refused, reports are taken" };
  }
  if (config.acquirer === "simulator") {
    log.warn("commands are answered by the simulated acquirer: no card is charged");
    return { acquirer: simulator(config), name: simulatorName(config) };
  }
  const options = await iso8583Options(config);
  const shown = new Set(options.profile.shownFields);
  const acquirer = new Iso8583Acquirer({ ...options, onEvent: (event) => logEvent(event, shown, log) });
  return { acquirer, name: `iso8583, ${options.profile.name}` };
}

/**
 * The acquirers that commands go to: the one of the settings, and those that are registered.
 *
 * @param ofSettings null: there is none
 */
export function openAcquirersOf(
  { database, config, log, warn }: Pick<Infrastructure, "database" | "config" | "log" | "warn">,
  masterKey: MasterKey,
  ofSettings: Acquirer | null,
) {
  const store = new PostgresAcquirers(database);
  const registry = new AcquirerRegistry(store, masterKey);
  const acquirers = new OpenAcquirers({
    ofSettings,
    store,
    open(stored, after) {
      const options = { ...registry.linkOptions(stored), clock: systemClock };
      const shown = new Set(options.profile.shownFields);
      const own = log.child({ acquirer: stored.name });
      return new Iso8583Acquirer({ ...options, after, onEvent: (event) => logEvent(event, shown, own) });
    },
    drainMs: config.acquirerTimeoutMs,
    onTrouble: warn("a registered acquirer could not be opened"),
  });
  return { acquirers, registry };
}

/** What the link is opened with: its profile and its keys, read from their files. */
export async function iso8583Options(config: Config): Promise<Iso8583Options> {
  const { acquirerProfile, acquirerHosts: hosts, acquirerMacKey } = config;
  if (acquirerProfile === null) throw new Error("PAYBELL_ACQUIRER_PROFILE is required.");
  const profile = readProfile(await readFile(acquirerProfile, "utf8"));
  const tls = config.acquirerTls === "off" ? undefined : await tlsOptions(config);
  return { profile, hosts, tls, macKey: acquirerMacKey ?? undefined, clock: systemClock };
}

async function tlsOptions({ acquirerCaFile, acquirerCertificateFile, acquirerKeyFile }: Config) {
  const read = (path: string | null) => (path === null ? undefined : readFile(path));
  const [ca, cert, key] = await Promise.all([
    read(acquirerCaFile),
    read(acquirerCertificateFile),
    read(acquirerKeyFile),
  ]);
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
}

function logEvent(event: LinkEvent, shown: ReadonlySet<number>, log: Log): void {
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
    case "down":
      log.warn({ host, detail: event.detail }, "acquirer: the connection ended");
      return;
    case "unusable":
      log.warn({ host, detail: event.detail }, "acquirer: the host cannot be used");
      return;
    case "ignored": {
      // An answer to a process that is gone says what became of its request.
      const message = event.message && maskedLines(event.message, shown);
      log.warn({ host, detail: event.detail, message }, "acquirer: a message was ignored");
    }
  }
}
