import { type KeyObject, randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { isSea } from "node:sea";
import type { Cipher } from "@paybell/contract";
import { simulator } from "../app/configured-acquirers.ts";
import { readCallbackCas } from "../app/egress.ts";
import { requireFreePort } from "../app/listeners.ts";
import { type Service, startService } from "../app.ts";
import type { Config } from "../config/config.ts";
import { SandboxReceiverControl } from "../http/receiver-control.ts";
import { idTimeMs, isUuidV7, type PartnerId } from "../ids.ts";
import type { Partner, PartnerDirectory } from "../partners/partner.ts";
import { startEmbeddedPostgres } from "../postgres/embedded.ts";
import { embeddedUrls } from "../programs/database.ts";
import type { Log } from "../telemetry/log.ts";
import {
  credentialsPath,
  loopbackCertificate,
  readCredentials,
  type SandboxCredentials,
  sandboxMasterKey,
  writeCredentials,
} from "./credentials.ts";
import { bannerLines, failedAttemptLines, failedLines, ipnLines, refusedLines, reversalLines } from "./output.ts";
import type { OutputStyle } from "./output-text.ts";
import { type ReceiverStart, type SandboxReceiver, startReceiver } from "./receiver.ts";

export interface SandboxOptions {
  readonly config: Config;
  readonly log: Log;
  readonly style: OutputStyle;
  /** Prints lines to the terminal. */
  readonly tell: (lines: readonly string[]) => void;
  readonly workingDirectory: string;
}

export interface Sandbox {
  readonly credentials: SandboxCredentials;
  readonly inFlight: () => number;
  /** Resolves, with the reason, when its PostgreSQL ended unexpectedly. */
  readonly died: Promise<string>;
  /** @returns the number of notifications kept for the next start; undefined if unknown */
  stop(): Promise<number | undefined>;
  /** Stops only PostgreSQL, without waiting for work in flight. */
  stopAtOnce(): Promise<void>;
}

const hosts = ["127.0.0.1", "::1"];
const loopback = ["127.0.0.0/8", "::1/128"];

/** The service on its own PostgreSQL with one partner and that partner's real HTTPS receiver, on localhost only. */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { config, log, style, tell } = options;
  const startedMs = performance.now();
  const home = resolve(options.workingDirectory, config.home);
  await requireFreePort(hosts, config.port, { home });
  const furtherCas = await readCallbackCas(config);
  const postgres = await startPostgres(config, home, log);
  const closing: (() => Promise<unknown>)[] = [() => postgres.stop()];
  try {
    const [masterKey, before, { ca }] = await Promise.all([
      sandboxMasterKey(home),
      readCredentials(home),
      loopbackCertificate(home),
    ]);
    const operatorToken = before?.operatorToken ?? randomBytes(32).toString("base64url");
    const desk = new SandboxReceiverControl();
    let partnerId: PartnerId | undefined;
    const service = await startService({
      receiverControl: { receiver: desk, partnerId: () => partnerId },
      config: { ...config, operatorTokens: [operatorToken] },
      ...postgres.urls,
      masterKey,
      acquirer: simulator(config),
      acquirerName: "simulator",
      log,
      sandbox: true,
      hosts,
      callbackCas: [ca, ...furtherCas],
      onAttempt: (claimed, { attempt, next }) => {
        if (attempt.reason === null) return;
        const nextAfterMs = next.kind === "retry" ? next.delayMs : null;
        const { url, httpStatus, reason } = attempt;
        const attemptNo = claimed.attemptsMade + 1;
        tell(
          failedAttemptLines({ notificationId: claimed.id, attemptNo, url, httpStatus, reason, nextAfterMs }, style),
        );
      },
      onReversalEnded: (transaction, end) => tell(reversalLines(transaction, end, style)),
    });
    closing.push(() => service.stop());

    const { partner, secrets } = await sandboxPartner(service, before);
    partnerId = partner.id;
    const cipherNow = () => (service.directory.cached(partner.id) ?? partner).settings.cipher;
    const receiver = await startObservedReceiver(
      { home, desk, keys: receiverKeys(partner) },
      before?.receiverUrl,
      cipherNow,
      options,
    );
    closing.push(() => receiver.close());
    const { callBackUrl } = partner.settings;
    const isOurs = callBackUrl === null || callBackUrl === before?.receiverUrl;
    if (isOurs && callBackUrl !== receiver.url)
      await service.registry.change(partner.id, { callBackUrl: receiver.url });
    const baseUrl = `http://127.0.0.1:${config.port}`;
    const credentials: SandboxCredentials = {
      baseUrl,
      operatorToken,
      partnerId: partner.id,
      apiKey: secrets.apiKey,
      ...keyTexts(partner),
      receiverUrl: receiver.url,
    };
    await writeCredentials(home, credentials);
    const stopFollowing = followKeys(service.directory, partner, receiver, (keys) =>
      writeCredentials(home, { ...credentials, ...keys }),
    );

    // When it answers, its credentials have been written.
    await service.listen();
    tell(
      bannerLines(
        {
          baseUrl,
          receiverUrl: receiver.url,
          credentialsPath: credentialsPath(home),
          workingDirectory: options.workingDirectory,
          readyAfterMs: performance.now() - startedMs,
          executable: isSea() ? process.execPath : undefined,
        },
        style,
      ),
    );
    return {
      credentials,
      inFlight: service.inFlight,
      died: postgres.died,
      async stop() {
        stopFollowing();
        try {
          const pending = await service.stop();
          await receiver.close();
          return pending;
        } finally {
          await postgres.stop();
        }
      },
      stopAtOnce: () => postgres.stop(),
    };
  } catch (error) {
    for (const close of closing.reverse()) await close().catch(() => undefined);
    throw error;
  }
}

/** The embedded one; the executable file has none in it, and takes that of DATABASE_URL. */
async function startPostgres({ databaseUrl, migrationDatabaseUrl }: Config, home: string, log: Log) {
  if (isSea() && databaseUrl !== null)
    return {
      urls: { databaseUrl, ownerUrl: migrationDatabaseUrl },
      died: new Promise<string>(() => undefined),
      stop: async () => undefined,
    };
  const postgres = await startEmbeddedPostgres({ home, log: (line) => log.info(line) });
  return { urls: embeddedUrls(postgres), died: postgres.died, stop: () => postgres.stop() };
}

/** The partner of the last start, or a new one, also if its API key is no longer valid. */
async function sandboxPartner(
  service: Service,
  before: SandboxCredentials | undefined,
): Promise<{ partner: Partner; secrets: { readonly apiKey: string } }> {
  const known = before && (await service.directory.findByApiKey(before.apiKey));
  if (before && known?.partner.id === before.partnerId) return { partner: known.partner, secrets: before };
  const { partner, secrets } = await service.registry.register({
    name: "Sandbox partner",
    callbackAddresses: loopback,
    callingAddresses: loopback,
  });
  const registered = await service.directory.find(partner.id);
  if (registered === undefined) throw new Error("The sandbox partner was registered and cannot be found.");
  return { partner: registered, secrets };
}

/**
 * Starts the sandbox partner's receiver, which prints deliveries to the terminal, if possible on the port of the last
 * start.
 */
async function startObservedReceiver(
  given: Pick<ReceiverStart, "home" | "desk" | "keys">,
  lastUrl: string | undefined,
  cipherNow: () => Cipher,
  { style, tell }: SandboxOptions,
): Promise<SandboxReceiver> {
  const start: ReceiverStart = {
    ...given,
    onIpn: (received) => {
      const { id } = received.ipn;
      // Our own ids contain the time of the command; a switch's may not.
      const afterCommandMs = isUuidV7(id) ? { afterCommandMs: Math.max(0, Date.now() - idTimeMs(id)) } : {};
      tell(ipnLines({ received, cipher: cipherNow(), ...afterCommandMs }, style));
    },
    onRefused: (refused) => tell(refusedLines(refused, style)),
    onFailed: (failed) => tell(failedLines(failed, style)),
  };
  // Pending notifications go to the port of the last start.
  const port = lastUrl === undefined ? 0 : Number(new URL(lastUrl).port);
  try {
    return await startReceiver({ ...start, port });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE" || port === 0) throw error;
    return startReceiver({ ...start, port: 0 });
  }
}

const followKeysEveryMs = 500;

/**
 * The sandbox has both sides' keys: its receiver follows every change of the partner at once, which a real one could
 * not.
 */
function followKeys(
  directory: Pick<PartnerDirectory, "cached">,
  first: Partner,
  receiver: SandboxReceiver,
  changed: (keys: KeyTexts) => Promise<void>,
): () => void {
  let current = first;
  const timer = setInterval(() => {
    const partner = directory.cached(first.id);
    if (partner === undefined || partner === current) return;
    receiver.changeKeys(receiverKeys(partner, current));
    current = partner;
    void changed(keyTexts(partner));
  }, followKeysEveryMs);
  return () => clearInterval(timer);
}

type KeyTexts = Pick<SandboxCredentials, "encryptionKey" | "signingKey" | "webhookSecret">;

function keyTexts({ keys }: Partner): KeyTexts {
  const [webhook] = keys.webhook;
  return {
    encryptionKey: textOf(keys.encryption.key),
    signingKey: textOf(keys.signing.key),
    webhookSecret: webhook === undefined ? "" : `whsec_${textOf(webhook.key)}`,
  };
}

/** Deliveries in flight were sealed with the previous keys. */
function receiverKeys(partner: Partner, before: Partner = partner) {
  const { cipher, encoding, signing } = partner.settings;
  const [now, then] = [keyTexts(partner), keyTexts(before)];
  const both = (name: keyof KeyTexts) => [...new Set([now[name], then[name]])].map((key) => ({ key }));
  return {
    encryptionKey: both("encryptionKey"),
    signingKey: both("signingKey"),
    webhookSecret: both("webhookSecret"),
    cipher,
    encoding,
    signing,
    fields: [...new Set([partner.settings.fields, before.settings.fields])],
  };
}

function textOf(key: KeyObject): string {
  return key.export().toString("base64");
}
