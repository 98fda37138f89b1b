import { randomBytes } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import type { NetConnectOpts } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type ReceivedIpn, type Receiver, receiver } from "@paybell/partner";
import type { Cleanup } from "../bench/command.ts";
import { freePort } from "../test/support/ports.ts";
import { Caller } from "./caller.ts";
import { CitusCluster } from "./citus.ts";
import { ExpectedTotals } from "./expected-totals.ts";
import { ownAddress, ownTree, ServiceInstance } from "./instance.ts";
import { Journal } from "./journal.ts";
import { FaultyLink } from "./link.ts";
import { NameServer } from "./name-server.ts";
import { embeddedPrograms, PostgresCluster, SmallDisk } from "./postgres.ts";
import type { SeededRandom } from "./random.ts";
import { type PartnerCertificate, PartnersServer, partnerCertificate, partnerDomain } from "./receiver.ts";
import type { Recovery } from "./round.ts";

/** The parts of a deployment. */
export interface DeploymentPlan {
  readonly instances: number;
  readonly hasStandby: boolean;
  /** Default: one PostgreSQL, or two. */
  readonly isCitus?: boolean;
  readonly partners: number;
}

/** POSTs in flight of one instance, and the unrecorded outcomes that it may have for each of them. */
export const slots = 64;
export const unrecordedPerSlot = 4;

/**
 * For connecting, too: all partners' servers and the network are this one process. Measured with a load of 20 on two
 * cores: each turn of its event loop took 0.4 s and a TLS handshake 8 s, so that after the faults that cut every
 * connection no new one was made for minutes.
 */
const attemptTimeoutMs = "12000";
const diskMegabytes = 1_024;
const partnerLinks = 2;
const hook = pathToFileURL(join(import.meta.dirname, "name-hook.ts")).href;

/** The parts that a fault can affect: instances, database, partners and the network between them. */
export class Deployment {
  readonly folder: string;
  readonly random: SeededRandom;
  readonly operatorToken = randomBytes(32).toString("hex");
  readonly journal = new Journal();
  readonly books = new ExpectedTotals();
  /** Watches for the first deliveries after a fault. */
  recovery: Recovery | undefined;

  readonly instances: ServiceInstance[] = [];
  readonly caller = new Caller(this.instances);
  /** From each instance to the database, in the same order. */
  readonly databaseLinks: FaultyLink[] = [];
  readonly server: PartnersServer;
  /** From all instances to the partners: partner n behind link n modulo their number. */
  readonly partnerLinks: FaultyLink[] = [];
  readonly names = new NameServer(ownAddress);
  readonly partners: RegisteredPartner[] = [];
  disk: SmallDisk | undefined;
  #database: PostgresCluster | CitusCluster | undefined;
  #version = 0;

  private constructor(folder: string, random: SeededRandom, certificate: PartnerCertificate) {
    this.folder = folder;
    this.random = random;
    this.server = new PartnersServer(certificate, (partner, received) => this.#delivered(partner, received));
  }

  static async build(
    plan: DeploymentPlan,
    folder: string,
    random: SeededRandom,
    cleanup: Cleanup,
  ): Promise<Deployment> {
    await mkdir(folder, { mode: 0o711 });
    cleanup.add(() => rm(folder, { recursive: true, force: true }));
    const certificate = await partnerCertificate(ownAddress);
    await writeFile(join(folder, "callback-ca.pem"), certificate.ca);
    const stage = new Deployment(folder, random, certificate);
    cleanup.add(() => stage.caller.close());
    await stage.#openPartners(cleanup);
    await stage.#openDatabase(plan, cleanup);
    await stage.#startInstances(plan, cleanup);
    await stage.#registerPartners(plan.partners);
    return stage;
  }

  /** The server for a fault that needs only one: of Citus, the coordinator. */
  get primary(): PostgresCluster["primary"] | CitusCluster["primary"] {
    if (this.#database === undefined) throw new Error("The stage has no database yet.");
    return this.#database.primary;
  }

  get cluster(): PostgresCluster {
    if (this.#database instanceof PostgresCluster) return this.#database;
    throw new Error("The stage has no standby.");
  }

  get citus(): CitusCluster {
    if (this.#database instanceof CitusCluster) return this.#database;
    throw new Error("The stage is not on Citus.");
  }

  /** Connections to partners that were damaged and answers that they kept back: each may bring an IPN once more. */
  get answersLost(): number {
    return this.server.forgotten + this.partnerLinks.reduce((sum, { damaged }) => sum + damaged, 0);
  }

  /** Every instance reaches the primary there from now on. */
  leadToPrimary(): void {
    for (const link of this.databaseLinks) link.leadTo(this.primary.address);
  }

  /** @returns the number of earlier versions */
  nextVersion(): number {
    this.#version += 1;
    return this.#version;
  }

  async #openPartners(cleanup: Cleanup): Promise<void> {
    await this.server.listen(ownAddress);
    cleanup.add(() => this.server.close());
    for (let at = 0; at < partnerLinks; at += 1) {
      const target = { host: ownAddress, port: this.server.port };
      this.partnerLinks.push(await this.#openLink(target, `partners ${at}`, ownAddress, cleanup));
    }
    await this.names.listen();
    cleanup.add(() => this.names.close());
  }

  async #openLink(target: NetConnectOpts, name: string, host: string, cleanup: Cleanup): Promise<FaultyLink> {
    const link = new FaultyLink(target, this.random.fork(name));
    await link.listen(host);
    cleanup.add(() => link.close());
    return link;
  }

  async #openDatabase({ hasStandby, isCitus = false }: DeploymentPlan, cleanup: Cleanup): Promise<void> {
    const folder = join(this.folder, "database");
    if (isCitus) this.#database = await CitusCluster.start(folder, this.random.fork("citus"));
    else {
      await mkdir(folder, { mode: 0o755 });
      // A clone of a primary on the small disk would have to fit on it too.
      const disk = hasStandby ? undefined : await SmallDisk.mount(folder, diskMegabytes);
      if (disk !== undefined) cleanup.add(() => disk.unmount());
      this.disk = disk;
      const programs = await embeddedPrograms(join(this.folder, "programs"));
      this.#database = await PostgresCluster.start(folder, programs, hasStandby);
    }
    const database = this.#database;
    cleanup.add(() => database.stop());
  }

  async #startInstances({ instances }: DeploymentPlan, cleanup: Cleanup): Promise<void> {
    const masterKey = randomBytes(32).toString("base64");
    for (let at = 0; at < instances; at += 1) {
      const link = await this.#openLink(this.primary.address, `database ${at}`, "127.0.0.1", cleanup);
      this.databaseLinks.push(link);
      const instance = new ServiceInstance({
        tree: ownTree,
        nodeArguments: ["--import", `${hook}?${this.names.at}`],
        port: await freePort(),
        operatorPort: await freePort(),
        env: {
          DATABASE_URL: PostgresCluster.urlAt(link.port),
          PAYBELL_MASTER_KEY: masterKey,
          PAYBELL_OPERATOR_TOKEN: this.operatorToken,
          PAYBELL_CALLBACK_CA_FILE: join(this.folder, "callback-ca.pem"),
          PAYBELL_HOME: join(this.folder, `home-${at}`),
          PAYBELL_HOST: "127.0.0.1",
          PAYBELL_ACQUIRER: "simulator",
          PAYBELL_SLOTS_MAX: String(slots),
          PAYBELL_ATTEMPT_TIMEOUT_MS: attemptTimeoutMs,
          PAYBELL_CONNECT_TIMEOUT_MS: attemptTimeoutMs,
          PAYBELL_ACQUIRER_TIMEOUT_MS: "1000",
          // Longer than an attempt: a planned stop repeats nothing.
          PAYBELL_DRAIN_TIMEOUT_MS: "20000",
        },
      });
      this.instances.push(instance);
      cleanup.add(() => instance.kill());
      // The first one migrates, and writes the check of the master key down.
      if (at === 0) await instance.start();
    }
    await Promise.all(this.instances.slice(1).map((instance) => instance.start()));
  }

  async #registerPartners(count: number): Promise<void> {
    for (let index = 0; index < count; index += 1) {
      const port = this.partnerLinks[index % partnerLinks]?.port ?? 0;
      const callBackUrl = `https://shop-${index}.${partnerDomain}:${port}/ipn/${index}`;
      const partner = await registerPartner(this.caller, this.operatorToken, { index, callBackUrl });
      this.server.opensWith(index, partner.opener);
      this.partners.push(partner);
    }
  }

  #delivered(partner: number, received: ReceivedIpn): void {
    const first = this.journal.deliver(partner, received);
    if (first === undefined) return;
    this.recovery?.delivered(partner, first.no);
    this.books.enter(partner, received, first.before[0]);
  }
}

/** A partner as the service knows it. */
export interface RegisteredPartner {
  /** Its place among the partners of the stage. */
  readonly index: number;
  readonly id: string;
  readonly apiKey: string;
  readonly opener: Receiver;
}

// Short steps first, so that a receiver that comes back is tried soon; eight minutes in all, longer than any fault.
const retry = [1, 1, 2, 2, 3, 3, 5, 5, 5, 5, ...Array<number>(8).fill(10), ...Array<number>(12).fill(30)];
/** All partners' servers are one process: more connections at once than it can take would look like a fault. */
const maxInFlight = 8;

export async function registerPartner(
  caller: Caller,
  operatorToken: string,
  {
    index,
    callBackUrl,
    ...settings
  }: { readonly index: number; readonly callBackUrl: string; readonly refunds?: "notified" },
): Promise<RegisteredPartner> {
  const { status, body } = await caller.call("POST", "/operator/v1/partners", operatorToken, {
    name: `Shop ${index}`,
    callBackUrl,
    callbackAddresses: [`${ownAddress}/32`],
    callingAddresses: ["127.0.0.1/32"],
    retry,
    maxInFlight,
    terminals: "open",
    ...settings,
  });
  if (status !== 201) throw new Error(`A partner was not registered: ${status} ${JSON.stringify(body)}`);
  const { id, apiKey, encryptionKey, signingKey, webhookSecret } = body as Readonly<Record<string, string>>;
  if (id === undefined || apiKey === undefined || !encryptionKey || !signingKey || !webhookSecret)
    throw new Error("A registration has no keys.");
  return { index, id, apiKey, opener: receiver({ encryptionKey, signingKey, webhookSecret }) };
}
