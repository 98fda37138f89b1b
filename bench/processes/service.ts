import { randomUUID } from "node:crypto";
import { Writable } from "node:stream";
import { SimulatedAcquirer } from "../../packages/server/src/acquirer/simulator/simulator.ts";
import { type Service, startService } from "../../packages/server/src/app.ts";
import type { CompletionRequest } from "../../packages/server/src/commands/request.ts";
import { readConfig } from "../../packages/server/src/config.ts";
import { createLog } from "../../packages/server/src/log.ts";
import { MasterKey } from "../../packages/server/src/partners/master-key.ts";
import type { CallbackTarget } from "../callback.ts";
import { producers, type RoundOutcome } from "../contender.ts";
import { saleCompletion } from "../sale.ts";
import { answer } from "./channel.ts";

export interface ServiceStart {
  readonly target: CallbackTarget;
  readonly databaseUrl: string;
  /** Partners among which the load is spread, each with the default settings: 32 POSTs in flight. */
  readonly partners: number;
}

export interface ServiceAt {
  readonly url: string;
  readonly operatorToken: string;
  readonly partners: readonly { readonly id: string; readonly apiKey: string }[];
}

/** How far it is. */
export interface ServiceStanding {
  /** Accepted callbacks, since the start. */
  readonly attempts: number;
  readonly cpuMs: number;
  readonly memoryBytes: number;
}

const loopback = ["127.0.0.0/8"];
const sampleMemoryEveryMs = 100;
const pollMs = 2;

/** Paybell, whole, with its own HTTP API; completions can be handed over in process as well. */
export function serviceMethods(process: NodeJS.Process) {
  let service: Service | undefined;
  let partnerIds: readonly string[] = [];
  let attempts = 0;
  let failure: string | undefined;
  let memoryBytesMax = 0;
  const sampler = setInterval(() => {
    memoryBytesMax = Math.max(memoryBytesMax, process.memoryUsage.rss());
  }, sampleMemoryEveryMs);
  sampler.unref();

  async function start({ target, databaseUrl, partners }: ServiceStart): Promise<ServiceAt> {
    const operatorToken = randomUUID() + randomUUID();
    const log = createLog("warn", new Writable({ write: (line, _encoding, done) => process.stderr.write(line, done) }));
    service = await startService({
      config: { ...readConfig({}), port: 0, operatorTokens: [operatorToken] },
      databaseUrl,
      masterKey: MasterKey.generate(),
      acquirer: new SimulatedAcquirer(),
      acquirerName: "simulator",
      log,
      sandbox: true,
      hosts: ["127.0.0.1"],
      callbackCas: [target.ca],
      onAttempt: (_claimed, { attempt }) => {
        if (attempt.reason === null) attempts += 1;
        else failure ??= `A callback failed: ${attempt.reason}: ${attempt.detail}`;
      },
    });
    const registered: { readonly id: string; readonly apiKey: string }[] = [];
    for (let index = 0; index < partners; index += 1) {
      const { partner, secrets } = await service.registry.register({
        name: `Partner ${index}`,
        callBackUrl: target.url,
        callbackAddresses: loopback,
        callingAddresses: loopback,
      });
      registered.push({ id: partner.id, apiKey: secrets.apiKey });
      await service.directory.find(partner.id);
    }
    partnerIds = registered.map(({ id }) => id);
    return { url: (await service.listen())[0] ?? "", operatorToken, partners: registered };
  }

  /** Resolves when so many attempts were answered since the start, and each is recorded: no pending row is left. */
  async function drained({ attempts: wanted }: { readonly attempts: number }): Promise<void> {
    while (attempts < wanted || (service?.inFlight() ?? 0) > 0) {
      // It is sent again, and nothing is lost; but it is no measurement any more.
      if (failure !== undefined) throw new Error(failure);
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  }

  async function round({ durationMs }: { readonly durationMs: number }): Promise<RoundOutcome> {
    const startedMs = performance.now();
    const cpuStart = process.cpuUsage();
    const attemptsBefore = attempts;
    let count = 0;
    const produce = async (_: unknown, index: number) => {
      const partnerId = partnerIds[index % partnerIds.length] ?? "";
      while (performance.now() - startedMs < durationMs) {
        const completion = saleCompletion(partnerId, randomUUID()) as unknown as CompletionRequest;
        const [result] = (await service?.reports.report([completion])) ?? [];
        if (result?.result !== "accepted") throw new Error(`A completion was ${result?.result}.`);
        count += 1;
      }
    };
    await Promise.all(Array.from({ length: producers }, produce));
    await drained({ attempts: attemptsBefore + count });
    const { user, system } = process.cpuUsage(cpuStart);
    return { count, elapsedMs: performance.now() - startedMs, cpuMs: (user + system) / 1_000 };
  }

  return {
    start,
    round,
    drained,
    standing: (): ServiceStanding => {
      const { user, system } = process.cpuUsage();
      return { attempts, cpuMs: (user + system) / 1_000, memoryBytes: memoryBytesMax };
    },
    stop: async (): Promise<void> => {
      clearInterval(sampler);
      await service?.stop();
    },
  };
}

if (import.meta.main) answer(process, serviceMethods(process));
