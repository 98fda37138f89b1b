import type { KeyObject } from "node:crypto";
import { resolve } from "node:path";
import type { Cipher } from "@paybell/contract";
import { SimulatedAcquirer } from "../acquirer/simulator/simulator.ts";
import { type Service, startService } from "../app.ts";
import type { Config } from "../config.ts";
import { idTimeMs, isUuidV7 } from "../ids.ts";
import type { Log } from "../log.ts";
import type { Partner } from "../partners/partner.ts";
import { startEmbeddedPostgres } from "../postgres/embedded.ts";
import { loopbackCertificate } from "./certificate.ts";
import {
  credentialsPath,
  newOperatorToken,
  readCredentials,
  type SandboxCredentials,
  sandboxMasterKey,
  writeCredentials,
} from "./credentials.ts";
import { type SandboxReceiver, startReceiver } from "./receiver.ts";
import {
  bannerLines,
  failedAttemptLines,
  failedLines,
  ipnLines,
  type Look,
  refusedLines,
  reversalLines,
} from "./story.ts";

export interface SandboxOptions {
  readonly config: Config;
  readonly log: Log;
  readonly look: Look;
  /** Writes lines for the person at the terminal. */
  readonly tell: (lines: readonly string[]) => void;
  readonly workingDirectory: string;
}

export interface Sandbox {
  readonly credentials: SandboxCredentials;
  readonly inFlight: () => number;
  /** Resolves, saying why, when its PostgreSQL ended without being asked to. */
  readonly died: Promise<string>;
  /** @returns how many notifications are kept for the next start; undefined when that is not known */
  stop(): Promise<number | undefined>;
  /** PostgreSQL alone, without waiting for what is in flight. */
  stopAtOnce(): Promise<void>;
}

const hosts = ["127.0.0.1", "::1"];
const loopback = ["127.0.0.0/8", "::1/128"];
const followKeysEveryMs = 500;

/**
 * The service on its own PostgreSQL with one partner and that partner's real HTTPS receiver, for this machine alone.
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { config, log, look, tell } = options;
  const startedMs = performance.now();
  const home = resolve(options.workingDirectory, config.home);
  const postgres = await startEmbeddedPostgres({ home, log: (line) => log.info(line) });
  const closing: (() => Promise<unknown>)[] = [() => postgres.stop()];
  try {
    const [masterKey, before, { ca }] = await Promise.all([
      sandboxMasterKey(home),
      readCredentials(home),
      loopbackCertificate(home),
    ]);
    const operatorToken = before?.operatorToken ?? newOperatorToken();
    const service = await startService({
      config: { ...config, operatorTokens: [operatorToken] },
      databaseUrl: postgres.connectionString,
      masterKey,
      acquirer: new SimulatedAcquirer(),
      acquirerName: "simulator",
      log,
      sandbox: true,
      hosts,
      callbackCas: [ca],
      onAttempt: (claimed, { attempt, next }) => {
        if (attempt.reason === null) return;
        const nextAfterMs = next.kind === "retry" ? next.delayMs : null;
        const { url, httpStatus, reason } = attempt;
        const attemptNo = claimed.attemptsMade + 1;
        tell(failedAttemptLines({ notificationId: claimed.id, attemptNo, url, httpStatus, reason, nextAfterMs }, look));
      },
      onReversalEnded: (transaction, end) => tell(reversalLines(transaction, end, look)),
    });
    closing.push(() => service.stop());

    const { partner, secrets } = await sandboxPartner(service, before);
    const cipherNow = () => (service.directory.peek(partner.id) ?? partner).settings.cipher;
    const receiver = await startSandboxReceiver(home, partner, before?.receiverUrl, cipherNow, options);
    closing.push(() => receiver.close());
    if (partner.settings.callBackUrl === null || partner.settings.callBackUrl === before?.receiverUrl) {
      if (partner.settings.callBackUrl !== receiver.url)
        await service.registry.change(partner.id, { callBackUrl: receiver.url });
    }
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
    const stopFollowing = followKeys(service, partner, receiver, (keys) =>
      writeCredentials(home, { ...credentials, ...keys }),
    );

    // Whoever is answered finds its credentials written.
    await service.listen();
    tell(
      bannerLines(
        {
          baseUrl,
          receiverUrl: receiver.url,
          credentialsPath: credentialsPath(home),
          workingDirectory: options.workingDirectory,
          readyAfterMs: performance.now() - startedMs,
        },
        look,
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

/** The partner of the last start, or a new one: also where its API key no longer stands. */
async function sandboxPartner(
  service: Service,
  before: SandboxCredentials | undefined,
): Promise<{ partner: Partner; secrets: { readonly apiKey: string } }> {
  const known = before && (await service.directory.findByApiKey(before.apiKey));
  if (before && known && known.id === before.partnerId) return { partner: known, secrets: before };
  const { partner, secrets } = await service.registry.register({
    name: "Sandbox partner",
    callbackAddresses: loopback,
    callingAddresses: loopback,
  });
  const registered = await service.directory.find(partner.id);
  if (registered === undefined) throw new Error("The sandbox partner was registered and cannot be found.");
  return { partner: registered, secrets };
}

async function startSandboxReceiver(
  home: string,
  partner: Partner,
  lastUrl: string | undefined,
  cipherNow: () => Cipher,
  { look, tell }: SandboxOptions,
): Promise<SandboxReceiver> {
  const start = {
    home,
    keys: receiverKeys(partner),
    onIpn: (received: Parameters<typeof ipnLines>[0]["received"]) => {
      const { id } = received.ipn;
      // Our own ids tell when the command came; one that a switch gave may not.
      const afterCommandMs = isUuidV7(id) ? { afterCommandMs: Math.max(0, Date.now() - idTimeMs(id)) } : {};
      tell(ipnLines({ received, cipher: cipherNow(), ...afterCommandMs }, look));
    },
    onRefused: (refused: Parameters<typeof refusedLines>[0]) => tell(refusedLines(refused, look)),
    onFailed: (failed: Parameters<typeof failedLines>[0]) => tell(failedLines(failed, look)),
  };
  // What is still pending goes to the port of the last start.
  const port = lastUrl === undefined ? 0 : Number(new URL(lastUrl).port);
  try {
    return await startReceiver({ ...start, port });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE" || port === 0) throw error;
    return startReceiver({ ...start, port: 0 });
  }
}

/**
 * The sandbox keeps both sides' keys: its receiver follows every change of the partner at once, as a real one could
 * not.
 */
function followKeys(
  service: Service,
  first: Partner,
  receiver: SandboxReceiver,
  changed: (keys: KeyTexts) => Promise<void>,
): () => void {
  let current = first;
  const timer = setInterval(() => {
    const partner = service.directory.peek(first.id);
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

/** What is on its way was sealed with the keys that stood before. */
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
  };
}

function textOf(key: KeyObject): string {
  return key.export().toString("base64");
}
