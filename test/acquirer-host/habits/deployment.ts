import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Cleanup } from "../../../bench/command.ts";
import { Caller } from "../../../faults/caller.ts";
import { type RegisteredPartner, registerPartner } from "../../../faults/deployment.ts";
import { ownAddress, ownTree, ServiceInstance } from "../../../faults/instance.ts";
import { embeddedPrograms, loadSettings, openUp, PostgresServer } from "../../../faults/postgres.ts";
import { PartnersServer, partnerCertificate } from "../../../faults/receiver.ts";
import { freePort } from "../../support/ports.ts";
import type { HostKeys } from "./host.ts";

const acquirerTimeoutMs = 1_000;
/** Longer than the host books late, also on a machine with other work. */
const reversalMarginMs = 10_000;

/** Two instances of the service on one database, a partner, and links to the two sites of the host. */
export interface Deployment {
  readonly instances: readonly ServiceInstance[];
  readonly caller: Caller;
  readonly partner: RegisteredPartner;
  /** The status of each transaction's IPN, as the partner verified it. */
  readonly ipns: ReadonlyMap<string, Readonly<Record<string, string>>>;
  query(sql: string): Promise<Record<string, unknown>[]>;
}

/** @param keep a folder for the logs of the instances */
export async function deploy(
  hostPorts: readonly number[],
  { macKey, keyEncryptionKey }: HostKeys,
  cleanup: Cleanup,
  keep: string | undefined,
): Promise<Deployment> {
  const folder = await openUp(await mkdtemp(join(tmpdir(), "paybell-habits-")));
  cleanup.add(() => rm(folder, { recursive: true, force: true }));
  const certificate = await partnerCertificate(ownAddress);
  await writeFile(join(folder, "callback-ca.pem"), certificate.ca);
  await writeFile(join(folder, "profile.json"), JSON.stringify(await profile()));
  const ipns = new Map<string, Readonly<Record<string, string>>>();
  const receiver = new PartnersServer(certificate, (_, { ipn }) => {
    ipns.set(ipn.id, ipn as unknown as Record<string, string>);
  });
  await receiver.listen(ownAddress);
  cleanup.add(() => receiver.close());
  await mkdir(join(folder, "programs"), { mode: 0o755 });
  const programs = await embeddedPrograms(join(folder, "programs"));
  const postgres = new PostgresServer(join(folder, "database"), programs, { ...loadSettings, fsync: "off" });
  await postgres.initialise();
  await postgres.start();
  cleanup.add(() => postgres.stop());
  await postgres.query("CREATE DATABASE habits");
  const operatorToken = randomBytes(32).toString("hex");
  const masterKey = randomBytes(32).toString("base64");
  const instances: ServiceInstance[] = [];
  for (const nth of [0, 1]) {
    const instance = new ServiceInstance({
      tree: ownTree,
      port: await freePort(),
      operatorPort: await freePort(),
      logFile: keep && join(keep, `instance-${nth}.log`),
      env: {
        DATABASE_URL: postgres.url("habits"),
        PAYBELL_MASTER_KEY: masterKey,
        PAYBELL_OPERATOR_TOKEN: operatorToken,
        PAYBELL_CALLBACK_CA_FILE: join(folder, "callback-ca.pem"),
        PAYBELL_HOME: join(folder, `home-${nth}`),
        PAYBELL_HOST: "127.0.0.1",
        PAYBELL_ACQUIRER: "iso8583",
        PAYBELL_ACQUIRER_PROFILE: join(folder, "profile.json"),
        PAYBELL_ACQUIRER_HOSTS: hostPorts.map((port) => `127.0.0.1:${port}`).join(),
        PAYBELL_ACQUIRER_MAC_KEY: macKey.toString("hex"),
        PAYBELL_ACQUIRER_KEY_ENCRYPTION_KEY: keyEncryptionKey.toString("hex"),
        PAYBELL_ACQUIRER_TLS: "off",
        PAYBELL_ACQUIRER_TIMEOUT_MS: String(acquirerTimeoutMs),
      },
    });
    cleanup.add(() => instance.kill());
    await instance.start();
    instances.push(instance);
  }
  const caller = new Caller(instances);
  cleanup.add(() => caller.close());
  const callBackUrl = `https://${ownAddress}:${receiver.port}/ipn/0`;
  const partner = await registerPartner(caller, operatorToken, { index: 0, callBackUrl, refunds: "notified" });
  receiver.opensWith(0, partner.opener);
  return { instances, caller, partner, ipns, query: (sql) => postgres.query(sql, [], "habits") };
}

/** The documents' profile, for this host: in ASCII, with MACs, over several connections, and in a hurry. */
async function profile(): Promise<unknown> {
  const text = await readFile(join(import.meta.dirname, "../../../docs/operator/acquirer-profile.json"), "utf8");
  const given = JSON.parse(text) as Readonly<Record<string, object>>;
  return {
    ...given,
    framing: { length: "binary2", countsItself: false, tpdu: "" },
    encoding: {
      ...given["encoding"],
      ...{ mti: "ascii", bitmap: "hex", lengths: "ascii", digits: "ascii", tracks: "ascii", bytes: "hex" },
    },
    approvals: ["00", "08"],
    partialApprovals: "accept",
    network: { ...given["network"], connections: 3 },
    mac: {
      ...{ algorithm: "x9.19", networkMessages: false },
      keyExchange: {
        ...{ encryption: "tdes-ecb", brings: { field: 70, values: ["101"] }, request: null, belongsTo: "acquirer" },
        ...{ key: { field: 48, from: 0, characters: 32 }, checkValue: { field: 48, from: 32, characters: 6 } },
      },
    },
    timings: { connectTimeoutMs: 2_000, networkTimeoutMs: 2_000, echoEveryMs: 5_000, reversalMarginMs },
  };
}
