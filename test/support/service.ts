import { randomBytes } from "node:crypto";
import { headerNames } from "@paybell/contract";
import type { ReceiverOptions } from "@paybell/partner";
import { afterAll } from "vitest";
import { SimulatedAcquirer } from "../../packages/server/src/acquirer/simulator/simulator.ts";
import { type InstanceRole, type Service, type ServiceOptions, startService } from "../../packages/server/src/app.ts";
import { readConfig } from "../../packages/server/src/config/config.ts";
import { MasterKey } from "../../packages/server/src/partners/master-key.ts";
import type { PartnerInput } from "../../packages/server/src/partners/settings/settings.ts";
import { failureKindOf } from "../../packages/server/src/store/database/transaction.ts";
import { createLog } from "../../packages/server/src/telemetry/log.ts";
import { createDatabase, type TestDatabase, withAdmin } from "./database.ts";
import { callbackCa, type PartnerServer, startPartnerServer } from "./receiver.ts";

export const operatorToken = "operator-token-of-the-tests-0123456789";

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Empty if it is not JSON. */
  readonly body: Readonly<Record<string, unknown>>;
}

export interface HttpCall {
  readonly key?: string | null;
  readonly json?: unknown;
  readonly body?: RequestInit["body"];
  readonly headers?: Readonly<Record<string, string>>;
}

/** One call to a service. `json` is sent as such; the key as a bearer token. */
export async function callHttp(baseUrl: string, method: string, path: string, call: HttpCall): Promise<HttpAnswer> {
  const { key, json, body, headers } = call;
  const response = await fetch(`${baseUrl}${path}`, {
    method,
    headers: {
      ...(typeof key === "string" && { authorization: `Bearer ${key}` }),
      ...(json !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(json !== undefined && { body: JSON.stringify(json) }),
    ...(body !== undefined && { body, duplex: "half" }),
  });
  const text = await response.text();
  const isJson = (response.headers.get("content-type") ?? "").includes("json");
  return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : {} };
}

/** A service that tests call over HTTP, in whichever process it runs. */
export interface ServiceClient {
  readonly baseUrl: string;
  /** @param key default: that of the tests */
  operator(method: string, path: string, json?: unknown, key?: string): Promise<HttpAnswer>;
  /** Reports completions, none of which may be refused. Resolves to their transactions' ids, in order. */
  report(completions: readonly Readonly<Record<string, unknown>>[]): Promise<readonly string[]>;
  /** Registers a partner with an HTTPS server of its own, which opens what it is sent with the keys it was given. */
  register(settings?: Partial<PartnerInput>, options?: RegisterOptions): Promise<TestPartner>;
}

interface RegisterOptions {
  /** The address on which its server listens; default 127.0.0.1. */
  readonly host?: string;
  /** Uses this one in place of a server of its own. */
  readonly server?: PartnerServer;
}

export interface TestPartner {
  readonly id: string;
  readonly secrets: Secrets;
  readonly keys: ReceiverOptions;
  readonly server: PartnerServer;
  call(method: string, path: string, call?: HttpCall): Promise<HttpAnswer>;
  run(command: Readonly<Record<string, unknown>>, headers?: Readonly<Record<string, string>>): Promise<HttpAnswer>;
  /** Runs a command that is notified. @returns also the id of the notification, which has the state by then; default: any */
  notify(command: Readonly<Record<string, unknown>>, state?: string): Promise<HttpAnswer & { readonly id: string }>;
  /** Its notification once it has the state. */
  settled(notificationId: string, state: string): Promise<Readonly<Record<string, unknown>>>;
  /** Once a pull lists it: every older transaction of the database server has ended, those of other tests too. */
  listed(notificationId: string): Promise<true>;
}

export interface Secrets {
  readonly apiKey: string;
  readonly encryptionKey: string;
  readonly signingKey: string;
  readonly webhookSecret: string;
}

/** Two services share the partners at once, in place of eight shards a second: no test is surprised by a hand-over. */
export async function shareShards(databaseUrl: string): Promise<void> {
  await withAdmin(databaseUrl, async (client) => {
    await eventually("two workers", async () => {
      const { rows } = await client.query("SELECT FROM leases WHERE kind = 'delivery'");
      return rows.length === 2 ? true : undefined;
    });
    await client.query("UPDATE shards SET lease_id = NULL WHERE shard % 2 = 1");
    await client.query("SELECT pg_notify('paybell_shards', '')");
    await eventually("both to own half of the shards", async () => {
      const { rows } = await client.query("SELECT count(*) AS owned FROM shards GROUP BY lease_id");
      return rows.length === 2 && rows.every(({ owned }) => Number(owned) === 128) ? true : undefined;
    });
  });
}

export function serviceClient(baseUrl: string, operatorUrl = baseUrl): ServiceClient {
  const operator = (method: string, path: string, json?: unknown, key = operatorToken) =>
    callHttp(operatorUrl, method, path, { key, ...(json !== undefined && { json }) });

  async function register(settings: Partial<PartnerInput> = {}, options: RegisterOptions = {}): Promise<TestPartner> {
    const { host = "127.0.0.1", server = await startPartnerServer(host) } = options;
    const input = {
      name: "A partner",
      callBackUrl: server.url,
      callbackAddresses: [`${host}/32`],
      callingAddresses: ["127.0.0.1/32"],
      terminals: "open",
      ...settings,
    };
    const { status, body, text } = await untilAccepted(() => operator("POST", "/operator/v1/partners", input));
    if (status !== 201) throw new Error(`the partner was not registered: ${text}`);
    const { id, ...secrets } = body as unknown as Secrets & { id: string };
    const keys = receiverKeys(secrets, settings);
    server.opensWith(keys);
    const call = (method: string, path: string, how: HttpCall = {}) =>
      callHttp(baseUrl, method, path, { key: secrets.apiKey, ...how });
    const run: TestPartner["run"] = (command, headers = {}) =>
      untilAccepted(() => call("POST", "/v1/commands", { json: command, headers }));
    const settled: TestPartner["settled"] = (notificationId, state) =>
      eventually(`notification ${notificationId} to be ${state}`, async () => {
        const { body: found } = await call("GET", `/v1/notifications/${notificationId}`);
        return found["state"] === state ? found : undefined;
      });
    return {
      id,
      secrets,
      keys,
      server,
      call,
      run,
      async notify(command, state) {
        const answer = await run(command);
        const notification = answer.body["notification"] as { readonly id: string } | null | undefined;
        if (!notification) throw new Error(`it has no notification: ${answer.status} ${answer.text}`);
        if (state !== undefined) await settled(notification.id, state);
        return { ...answer, id: notification.id };
      },
      settled,
      listed: (notificationId) =>
        eventually(`notification ${notificationId} to be listed`, async () => {
          const { body: page } = await call("GET", "/v1/notifications?limit=500");
          return (page["items"] as { id: string }[]).some(({ id }) => id === notificationId) || undefined;
        }),
    };
  }

  return {
    baseUrl,
    operator,
    register,
    async report(completions) {
      const send = () => operator("POST", "/operator/v1/completions", { completions });
      const { body, text } = await untilAccepted(send);
      const results = (body["results"] ?? []) as { result: string; transactionId?: string }[];
      const refused = results.filter(({ result }) => result === "refused");
      if (results.length !== completions.length || refused.length > 0) throw new Error(`not all accepted: ${text}`);
      return results.map(({ transactionId = "" }) => transactionId);
    },
  };
}

const ofBusyMachine = new Set<unknown>(["request_timeout", "unavailable"]);
/** About as many as a test has time for. */
const triesMax = 100;

/**
 * A machine that pauses for seconds leaves its instance without a lease until the next beat, and with writes whose time
 * is over. What it refuses as unavailable or as late was not accepted, and a caller repeats it. Tests of such refusals
 * use `call`.
 */
async function untilAccepted(send: () => Promise<HttpAnswer>): Promise<HttpAnswer> {
  for (let tries = 1; ; tries += 1) {
    const answer = await send();
    if (!ofBusyMachine.has(answer.body["code"]) || tries === triesMax) return answer;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
}

function receiverKeys(secrets: Secrets, settings: Partial<PartnerInput>): ReceiverOptions {
  const { encryptionKey, signingKey, webhookSecret } = secrets;
  const { cipher, encoding, signing, fields }: Pick<ReceiverOptions, "cipher" | "encoding" | "signing" | "fields"> =
    settings;
  return {
    encryptionKey,
    signingKey,
    webhookSecret,
    ...(cipher && { cipher }),
    ...(encoding && { encoding }),
    ...(signing && { signing }),
    ...(fields && { fields }),
  };
}

export interface WholeService extends ServiceClient {
  readonly service: Service;
  readonly database: TestDatabase;
  readonly acquirer: SimulatedAcquirer;
  /** Everything logged so far, at level debug. */
  logged(): string;
  /** Stops the service, then its partners' servers; removes the database it made. */
  stop(): Promise<void>;
}

export interface TestServiceOptions {
  /** Default: one of its own. */
  readonly database?: TestDatabase;
  /** Default true: it calls loopback addresses. */
  readonly sandbox?: boolean;
  readonly env?: NodeJS.ProcessEnv;
  /** The master key of the other instances on the same database; 32 bytes. Default: one of its own. */
  readonly masterKey?: Buffer;
  /** Default `all`. */
  readonly role?: InstanceRole;
  /** Default: the simulator. */
  readonly acquirer?: ServiceOptions["acquirer"];
  /** In addition to that of the test partners. */
  readonly callbackCas?: readonly string[];
}

/**
 * Started again, as production's supervisor does, while no connection opens: on a machine with other work this process
 * can stand still for as long as one may take.
 */
async function startDespitePauses(options: ServiceOptions): Promise<Service> {
  for (;;) {
    try {
      return await startService(options);
    } catch (error) {
      if (failureKindOf(error) !== "connection") throw error;
    }
  }
}

/** A service in this process, as `paybell serve` wires it, on 127.0.0.1: on the port of `env`, or a free one. */
export async function startTestService(options: TestServiceOptions = {}): Promise<WholeService> {
  const { sandbox = true, env = {}, masterKey = randomBytes(32) } = options;
  const database = options.database ?? (await createDatabase());
  const lines: string[] = [];
  const acquirer = new SimulatedAcquirer();
  const config = readConfig({ PAYBELL_OPERATOR_TOKEN: operatorToken, PAYBELL_STOP_NOTICE_MS: "0", ...env });
  const service = await startDespitePauses({
    config: { ...config, port: Number(env["PAYBELL_PORT"] ?? 0) },
    databaseUrl: database.serviceUrl,
    masterKey: new MasterKey(masterKey),
    acquirer: options.acquirer ?? acquirer,
    acquirerName: options.acquirer === undefined ? "simulator" : "iso8583",
    ...(options.role !== undefined && { role: options.role }),
    log: createLog("debug", {
      write: (line) => {
        lines.push(line);
        if (process.env["SHOW_LOG"]) process.stderr.write(line);
      },
    }),
    sandbox,
    hosts: ["127.0.0.1"],
    callbackCas: [await callbackCa(), ...(options.callbackCas ?? [])],
  });
  const [baseUrl = ""] = await service.listen();
  const client = serviceClient(baseUrl);
  const servers = new Set<PartnerServer>();
  return {
    ...client,
    service,
    database,
    acquirer,
    logged: () => lines.join(""),
    async register(settings, how) {
      const partner = await client.register(settings, how);
      servers.add(partner.server);
      return partner;
    },
    async stop() {
      await service.stop();
      await Promise.all([...servers].map((server) => server.close()));
      if (options.database === undefined) await database.drop();
    },
  };
}

/** The same for the tests of a file: it stops after them. */
export async function serviceOfFile(options: TestServiceOptions = {}): Promise<WholeService> {
  const service = await startTestService(options);
  afterAll(() => service.stop());
  return service;
}

/** As long as a machine with other work may take: a test ends soon after. */
const eventuallyMs = 880_000;
/** A look takes milliseconds of the processor, here and in the service: who has waited longer looks less often. */
const firstLookMs = 10;
const lastLooksMs = 50;

/** Polls `look` until it returns a result: for changes without a signal, such as a row. */
export async function eventually<Found>(
  what: string,
  look: () => Promise<Found | undefined>,
  timeoutMs = eventuallyMs,
): Promise<Found> {
  const startedMs = performance.now();
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    const waitedMs = performance.now() - startedMs;
    if (waitedMs > timeoutMs) throw new Error(`waited ${timeoutMs} ms in vain for ${what}`);
    const pauseMs = Math.min(Math.max(firstLookMs, waitedMs / 10), lastLooksMs);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** The id that every attempt of one notification carries. */
export function notificationIdOf({ headers }: { readonly headers: Readonly<Record<string, unknown>> }): string {
  return String(headers[headerNames.id]);
}
