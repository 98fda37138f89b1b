import { randomBytes } from "node:crypto";
import { SimulatedBank } from "../../packages/server/src/acquirer/simulator/bank.ts";
import { SimulatedAcquirer } from "../../packages/server/src/acquirer/simulator/simulator.ts";
import { type Service, startService } from "../../packages/server/src/app.ts";
import { readConfig } from "../../packages/server/src/config.ts";
import { createLog } from "../../packages/server/src/log.ts";
import { MasterKey } from "../../packages/server/src/partners/master-key.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { callbackCa } from "../support/receiver.ts";
import { callHttp, type HttpAnswer, operatorToken, serviceClient, type TestPartner } from "../support/service.ts";

type Command = Readonly<Record<string, unknown>>;

/** Several instances of the whole service on one database, with one strict bank. */
export interface Instances {
  readonly bank: SimulatedBank;
  readonly acquirers: readonly SimulatedAcquirer[];
  readonly database: TestDatabase;
  /** Its calls go to the first instance. */
  register(settings?: Parameters<ReturnType<typeof serviceClient>["register"]>[0]): Promise<TestPartner>;
  /** Sends one command to one of them. */
  run(nth: number, partner: TestPartner, command: Command): Promise<HttpAnswer>;
  stop(): Promise<void>;
}

export async function startInstances(count: number, env: NodeJS.ProcessEnv = {}): Promise<Instances> {
  const database = await createDatabase();
  const bank = new SimulatedBank({ strict: true });
  const masterKey = new MasterKey(randomBytes(32));
  const services: Service[] = [];
  const urls: string[] = [];
  const acquirers: SimulatedAcquirer[] = [];
  for (let started = 0; started < count; started += 1) {
    const acquirer = new SimulatedAcquirer({ bank, lateByMs: 100 });
    acquirers.push(acquirer);
    const service = await startService({
      config: { ...readConfig({ PAYBELL_OPERATOR_TOKEN: operatorToken, ...env }), port: 0 },
      databaseUrl: database.url,
      masterKey,
      acquirer,
      acquirerName: "simulator",
      log: createLog("fatal", { write: () => {} }),
      sandbox: true,
      hosts: ["127.0.0.1"],
      callbackCas: [await callbackCa()],
    });
    services.push(service);
    urls.push(...(await service.listen()));
  }
  const partners: TestPartner[] = [];
  return {
    bank,
    acquirers,
    database,
    async register(settings) {
      const partner = await serviceClient(urls[0] ?? "").register(settings);
      partners.push(partner);
      return partner;
    },
    run: (nth, partner, json) =>
      callHttp(urls[nth] ?? "", "POST", "/v1/commands", { key: partner.secrets.apiKey, json }),
    async stop() {
      await Promise.all(services.map((service) => service.stop()));
      await Promise.all(partners.map(({ server }) => server.close()));
      await database.drop();
    },
  };
}
