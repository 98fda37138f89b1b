import { randomBytes, randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "pg";
import type { Acquirer } from "../../packages/server/src/acquirer/acquirer.ts";
import { Iso8583Acquirer } from "../../packages/server/src/acquirer/iso8583/iso8583.ts";
import { FakeHost } from "../../packages/server/src/acquirer/iso8583/link/fake-host.fixture.ts";
import { readProfile } from "../../packages/server/src/acquirer/iso8583/profile/read.ts";
import { SimulatedAcquirer } from "../../packages/server/src/acquirer/simulator/simulator.ts";
import { type Service, startService } from "../../packages/server/src/app.ts";
import { systemClock } from "../../packages/server/src/clock.ts";
import type { CompletionRequest } from "../../packages/server/src/commands/reports/completion.ts";
import { readConfig } from "../../packages/server/src/config/config.ts";
import { ServiceError } from "../../packages/server/src/errors.ts";
import type { PartnerId } from "../../packages/server/src/ids.ts";
import { MasterKey } from "../../packages/server/src/partners/master-key.ts";
import { createLog } from "../../packages/server/src/telemetry/log.ts";
import { saleCompletion } from "../callback.ts";
import { producers, type RoundOutcome } from "../contender.ts";
import { drive, type Load } from "../load.ts";
import { answer } from "./channel.ts";

/** One that is registered at the start. */
export interface BenchPartner {
  readonly callBackUrl: string;
  readonly maxPerSecond?: number;
}

export interface RegisteredPartner {
  readonly id: string;
  readonly apiKey: string;
}

export interface ServiceStart {
  /** PEM: whom callbacks trust. */
  readonly ca: string;
  readonly databaseUrl: string;
  /** Registered here, with the default settings but for what each names. */
  readonly register: readonly BenchPartner[];
  /** Callbacks are meant to fail. Otherwise the first one that does is printed. */
  readonly mayFail?: boolean;
}

export interface ServiceAt {
  readonly url: string;
  readonly operatorToken: string;
  readonly partners: readonly RegisteredPartner[];
  /** Base64. */
  readonly masterKey: string;
}

/** The progress of the service. */
export interface ServiceFigures {
  /** Callbacks that were accepted, since the start. */
  readonly attempts: number;
  readonly failed: number;
  readonly cpuMs: number;
  /** Bytes that were resident when it held the most, since the start. */
  readonly memory: { readonly rss: number };
}

const loopback = ["127.0.0.0/8"];
const pollMs = 2;

/** Paybell, whole, with its own HTTP API; completions can be handed over in process as well. */
export function serviceMethods(process: NodeJS.Process) {
  let service: Service | undefined;
  let database: Client | undefined;
  let partnerIds: readonly string[] = [];
  let attempts = 0;
  let failed = 0;
  /** Wakes who waits for a number of attempts, the moment it is reached. */
  let onAttempts: (() => void) | undefined;

  async function start(plan: ServiceStart): Promise<ServiceAt> {
    const operatorToken = randomUUID() + randomUUID();
    const masterKey = randomBytes(32).toString("base64");
    const stderr = new Writable({ write: (line, _encoding, done) => process.stderr.write(line, done) });
    service = await startService({
      config: { ...readConfig({}), port: 0, operatorTokens: [operatorToken] },
      databaseUrl: plan.databaseUrl,
      masterKey: MasterKey.parse(masterKey),
      acquirer: await acquirerOf(process.env),
      acquirerName: process.env["BENCH_ACQUIRER"] ?? "simulator",
      log: createLog(plan.mayFail ? "error" : "warn", stderr),
      sandbox: true,
      hosts: ["127.0.0.1"],
      callbackCas: [plan.ca],
      onAttempt: (_claimed, { attempt }) => {
        if (attempt.reason === null) attempts += 1;
        else {
          failed += 1;
          if (failed === 1 && !plan.mayFail)
            process.stderr.write(`A callback failed, and is sent again: ${attempt.reason}: ${attempt.detail}\n`);
        }
        onAttempts?.();
      },
    });
    database = new Client({ connectionString: plan.databaseUrl });
    await database.connect();
    const partners: RegisteredPartner[] = [];
    for (const [index, one] of plan.register.entries()) {
      const { partner, secrets } = await service.registry.register({
        name: `Partner ${index}`,
        ...one,
        callbackAddresses: loopback,
        callingAddresses: loopback,
      });
      partners.push({ id: partner.id, apiKey: secrets.apiKey });
    }
    for (const { id } of partners) await service.directory.find(id as PartnerId);
    partnerIds = partners.map(({ id }) => id);
    return { url: (await service.listen())[0] ?? "", operatorToken, partners, masterKey };
  }

  /** Resolves when so many attempts were answered since the start, and each is recorded: no pending row is left. */
  async function drained({ attempts: wanted }: { readonly attempts: number }): Promise<void> {
    await answered(wanted);
    // A place is given back with the answer, which is written down a moment later.
    while ((await database?.query("SELECT FROM pending LIMIT 1"))?.rowCount) await pause(pollMs);
  }

  async function answered(wanted: number): Promise<void> {
    // One that failed is sent again, and what is measured includes the wait for it.
    while (attempts < wanted || (service?.inFlight() ?? 0) > 0) await pause(pollMs);
  }

  async function reportOne(partnerId: string): Promise<void> {
    const completion = saleCompletion(partnerId, randomUUID()) as unknown as CompletionRequest;
    for (;;) {
      try {
        const [result] = (await service?.reports.report([completion])) ?? [];
        if (result?.result === "accepted" || result?.result === "duplicate") return;
        throw new Error(`A completion was ${result?.result}.`);
      } catch (error) {
        // A disk that stalls for seconds: nobody knows whether it was stored, and it is reported again.
        if (!(error instanceof ServiceError && error.code === "unavailable")) throw error;
        await pause((error.retryAfterS ?? 1) * 1_000);
      }
    }
  }

  /** Completions in process, one after the other for each caller. */
  async function round(load: Load): Promise<RoundOutcome> {
    const startedMs = performance.now();
    const cpuStart = process.cpuUsage();
    const attemptsBefore = attempts;
    let count = 0;
    await drive(load, producers, async (caller) => {
      await reportOne(partnerIds[caller % partnerIds.length] ?? "");
      count += 1;
    });
    await drained({ attempts: attemptsBefore + count });
    const { user, system } = process.cpuUsage(cpuStart);
    return { count, elapsedMs: performance.now() - startedMs, cpuMs: (user + system) / 1_000 };
  }

  /** Partners are sent to, or not: what comes then waits in the database. */
  async function sending(state: "active" | "paused"): Promise<void> {
    // One after the other: together they would wait for the few connections of people's queries.
    for (const id of partnerIds) await service?.registry.setState(id as PartnerId, state);
  }

  /** Sends until this many more were accepted, then pauses. @returns how many followed the first in a second */
  async function drain(rows: number): Promise<number> {
    const before = attempts;
    let firstMs = 0;
    let lastMs = 0;
    const { promise: done, resolve } = Promise.withResolvers<undefined>();
    onAttempts = () => {
      if (attempts - before === 1) firstMs = performance.now();
      if (attempts - before === rows) {
        lastMs = performance.now();
        resolve(undefined);
      }
    };
    await sending("active");
    await done;
    onAttempts = undefined;
    await sending("paused");
    await answered(attempts);
    return ((rows - 1) / (lastMs - firstMs)) * 1_000;
  }

  return {
    start,
    round,
    drained,
    sending,
    drain,
    /** One completion of each, at the same time. */
    reportEach: async (partners: readonly string[]): Promise<void> => {
      await Promise.all(partners.map(reportOne));
    },
    standing: (): ServiceFigures => {
      const { user, system } = process.cpuUsage();
      const memory = { rss: process.resourceUsage().maxRSS * 1_024 };
      return { attempts, failed, cpuMs: (user + system) / 1_000, memory };
    },
    stop: async (): Promise<void> => {
      await service?.stop();
      await database?.end();
    },
  };
}

const profile = join(import.meta.dirname, "../../docs/operator/acquirer-profile.json");

/**
 * An acquirer that answers at once: the simulator, or with `BENCH_ACQUIRER=iso8583` a host over TCP. It runs in this
 * process, so that what it costs is counted too.
 */
async function acquirerOf(env: NodeJS.ProcessEnv): Promise<Acquirer> {
  if (env["BENCH_ACQUIRER"] !== "iso8583") return new SimulatedAcquirer();
  const host = await FakeHost.listen();
  host.keepsNothing = true;
  const acquirer = new Iso8583Acquirer({
    profile: readProfile(await readFile(profile, "utf8")),
    hosts: [{ host: "127.0.0.1", port: host.port }],
    clock: systemClock,
  });
  if (!(await acquirer.isUpWithin(10_000))) throw new Error(`The host is not reached: ${acquirer.health().detail}`);
  const close = acquirer.close.bind(acquirer);
  return Object.assign(acquirer, { close: () => close().then(() => host.close()) });
}

if (import.meta.main) answer(process, serviceMethods(process));
