import { randomBytes } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { ReceivedIpn } from "@paybell/partner";
import type { Cleanup } from "../bench/environment.ts";
import { Caller } from "./caller.ts";
import { machineAddress, partnerCertificate, partnerDomain } from "./certificate.ts";
import { CitusCluster } from "./citus-cluster.ts";
import { ExpectedTotals } from "./expected-totals.ts";
import { freePort, ownTree, ServiceInstance } from "./instance.ts";
import { Journal } from "./journal.ts";
import { FaultyLink } from "./link.ts";
import { NameServer } from "./name-server.ts";
import { type RegisteredPartner, registerPartner } from "./partner.ts";
import { PostgresCluster } from "./postgres-cluster.ts";
import { postgresProgram } from "./postgres-server.ts";
import type { SeededRandom } from "./random.ts";
import { PartnersServer } from "./receiver.ts";
import type { Recovery } from "./recovery.ts";
import { SmallDisk } from "./small-disk.ts";

/** The parts of a deployment. */
export interface DeploymentPlan {
  readonly instances: number;
  readonly hasStandby: boolean;
  /** Default: one PostgreSQL, or two. */
  readonly isCitus?: boolean;
  readonly partners: number;
  /** Arguments of `paybell serve` for each instance, in turn. */
  readonly serveArguments: readonly (readonly string[])[];
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
/** `paybell serve` calls no loopback address: where there are no others, the tests' service does, which is the same. */
const programs = {
  production: ["packages/cli/bin/paybell.js", "serve"],
  loopback: ["test/support/instance-fixtures/serve-loopback.ts"],
};
const hook = pathToFileURL(join(import.meta.dirname, "processes/name-hook.ts")).href;

/** The parts that a fault can affect: instances, database, partners and the network between them. */
export class Deployment {
  readonly journal = new Journal();
  readonly books = new ExpectedTotals();
  readonly folder: string;
  readonly operatorToken = randomBytes(32).toString("hex");
  readonly random: SeededRandom;
  /** Watches for the first deliveries after a fault. */
  recovery: Recovery | undefined;

  readonly instances: ServiceInstance[] = [];
  /** From each instance to the database, in the same order. */
  readonly databaseLinks: FaultyLink[] = [];
  /** From all instances to the partners: partner n behind link n modulo their number. */
  readonly partnerLinks: FaultyLink[] = [];
  readonly partners: RegisteredPartner[] = [];
  disk: SmallDisk | undefined;
  #cluster: PostgresCluster | CitusCluster | undefined;
  #names: NameServer | undefined;
  #server: PartnersServer | undefined;
  #caller: Caller | undefined;
  #version = 0;

  private constructor(folder: string, random: SeededRandom) {
    this.folder = folder;
    this.random = random;
  }

  static async build(
    plan: DeploymentPlan,
    folder: string,
    random: SeededRandom,
    cleanup: Cleanup,
  ): Promise<Deployment> {
    const stage = new Deployment(folder, random);
    await mkdir(folder, { mode: 0o711 });
    cleanup.add(() => rm(folder, { recursive: true, force: true }));
    await stage.#openPartners(cleanup);
    await stage.#openDatabase(plan, cleanup);
    await stage.#startInstances(plan, cleanup);
    await stage.#registerPartners(plan.partners);
    return stage;
  }

  /** The server for a fault that needs only one: of Citus, the coordinator. */
  get primary(): PostgresCluster["primary"] | CitusCluster["primary"] {
    return required(this.#cluster).primary;
  }

  get cluster(): PostgresCluster {
    if (this.#cluster instanceof PostgresCluster) return this.#cluster;
    throw new Error("The stage has no standby.");
  }

  get citus(): CitusCluster {
    if (this.#cluster instanceof CitusCluster) return this.#cluster;
    throw new Error("The stage is not on Citus.");
  }

  get names(): NameServer {
    return required(this.#names);
  }

  get server(): PartnersServer {
    return required(this.#server);
  }

  get caller(): Caller {
    return required(this.#caller);
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
    const address = this.#address;
    const certificate = await partnerCertificate(address);
    await writeFile(join(this.folder, "callback-ca.pem"), certificate.ca);
    const server = new PartnersServer(certificate, (partner, received) => this.#delivered(partner, received));
    await server.listen(address);
    cleanup.add(() => server.close());
    this.#server = server;
    for (let at = 0; at < partnerLinks; at += 1) {
      const link = new FaultyLink({ host: address, port: server.port }, this.random.fork(`partners ${at}`));
      await link.listen(address);
      cleanup.add(() => link.close());
      this.partnerLinks.push(link);
    }
    const names = new NameServer(address);
    await names.listen();
    cleanup.add(() => names.close());
    this.#names = names;
  }

  async #openDatabase({ hasStandby, isCitus = false }: DeploymentPlan, cleanup: Cleanup): Promise<void> {
    const folder = join(this.folder, "database");
    if (isCitus) {
      const cluster = await CitusCluster.start(folder, this.random.fork("citus"));
      cleanup.add(() => cluster.stop());
      this.#cluster = cluster;
      return;
    }
    await mkdir(folder, { mode: 0o755 });
    // A clone of a primary on the small disk would have to fit on it too.
    this.disk = hasStandby ? undefined : await SmallDisk.mount(folder, diskMegabytes);
    const { disk } = this;
    if (disk !== undefined) cleanup.add(() => disk.unmount());
    const cluster = await PostgresCluster.start(
      folder,
      await postgresProgram(join(this.folder, "programs")),
      hasStandby,
    );
    cleanup.add(() => cluster.stop());
    this.#cluster = cluster;
  }

  async #startInstances({ instances, serveArguments }: DeploymentPlan, cleanup: Cleanup): Promise<void> {
    const masterKey = randomBytes(32).toString("base64");
    for (let at = 0; at < instances; at += 1) {
      const link = new FaultyLink(this.primary.address, this.random.fork(`database ${at}`));
      await link.listen("127.0.0.1");
      cleanup.add(() => link.close());
      this.databaseLinks.push(link);
      const instance = new ServiceInstance({
        tree: ownTree,
        program: machineAddress() === undefined ? programs.loopback : programs.production,
        nodeArguments: ["--import", `${hook}?${this.names.at}`],
        serveArguments: serveArguments[at % Math.max(1, serveArguments.length)] ?? [],
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
          PAYBELL_DRAIN_TIMEOUT_MS: "8000",
        },
      });
      this.instances.push(instance);
      cleanup.add(() => instance.kill());
      // The first one migrates, and writes the check of the master key down.
      if (at === 0) await instance.start();
    }
    await Promise.all(this.instances.slice(1).map((instance) => instance.start()));
    const caller = new Caller(this.instances);
    cleanup.add(() => caller.close());
    this.#caller = caller;
  }

  async #registerPartners(count: number): Promise<void> {
    for (let index = 0; index < count; index += 1) {
      const port = this.partnerLinks[index % partnerLinks]?.port ?? 0;
      const callBackUrl = `https://shop-${index}.${partnerDomain}:${port}/ipn/${index}`;
      const address = this.#address;
      const partner = await registerPartner(this.caller, this.operatorToken, { index, callBackUrl, address });
      this.server.opensWith(index, partner.opener);
      this.partners.push(partner);
    }
  }

  get #address(): string {
    return machineAddress() ?? "127.0.0.1";
  }

  #delivered(partner: number, received: ReceivedIpn): void {
    const first = this.journal.deliver(partner, received);
    if (first === undefined) return;
    this.recovery?.delivered(partner, first.no);
    this.books.enter(partner, received, first.before[0]);
  }
}

function required<Part>(part: Part | undefined): Part {
  if (part === undefined) throw new Error("The stage is not built yet.");
  return part;
}
