import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse, parseAllDocuments, stringify } from "yaml";
import { readConfig } from "../../packages/server/src/config/config.ts";
import { ops, repository, run } from "../ops/files.ts";
import { fetchOnce } from "../support/fetched.ts";
import { needs, orSkip, pathOf } from "../support/programs.ts";

const chart = join(ops, "helm/paybell");
const guide = readFileSync(join(repository, "docs/operator/deploy.md"), "utf8");
/** The values that the guide shows: the least. */
const least = parse(/```yaml\n(# values\.yaml\n.*?)```/s.exec(guide)?.[1] ?? "");
/** What both intakes add. */
const intakes = {
  intakeClaim: "paybell-intake",
  settings: {
    PAYBELL_KAFKA_BROKERS: "kafka-1.kafka:9093,kafka-2.kafka:9093",
    PAYBELL_KAFKA_TOPIC: "completions",
    PAYBELL_KAFKA_SASL: "SCRAM-SHA-512",
    PAYBELL_KAFKA_USER: "paybell",
  },
  secretSettings: ["PAYBELL_KAFKA_PASSWORD"],
};

/** The manifests as Helm renders them with the guide's values. */
async function render(...values: readonly object[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "paybell-helm-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const files = values.map((one, at) => {
    const file = join(folder, `${at}.yaml`);
    writeFileSync(file, stringify(one));
    return ["--values", file];
  });
  return (await run(pathOf("helm"), ["template", "paybell", chart, ...files.flat()])).stdout;
}

const documentsOf = (manifests: string) => parseAllDocuments(manifests).map((document) => document.toJS());

interface Labels {
  readonly [name: string]: string;
}
const isOf = (selector: Labels, pod: Labels) => Object.entries(selector).every(([name, value]) => pod[name] === value);

describe("the Helm chart", needs("helm"), () => {
  test("passes Helm's own lint", async () => {
    const folder = mkdtempSync(join(tmpdir(), "paybell-helm-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const values = join(folder, "values.yaml");
    writeFileSync(values, stringify(least));
    const { stdout } = await run(pathOf("helm"), ["lint", "--strict", chart, "--values", values]);
    expect(stdout).toContain("0 chart(s) failed");
  });

  test.each<[string, object, RegExp]>([
    ["without the proxies that it trusts", { ...least, trustedProxies: [] }, /trustedProxies/],
    ["without a network of PostgreSQL", { ...least, networkPolicy: { to: [] } }, /networkPolicy\/to/],
    ["with a value that it does not know", { ...least, replicas: 3 }, /replicas/],
    [
      "with a setting that no name of the service can be",
      { ...least, settings: { acquirer: "x" } },
      /'acquirer' does not match/,
    ],
    ["with a setting that is no text", { ...least, settings: { PAYBELL_SLOTS_MAX: 9 } }, /PAYBELL_SLOTS_MAX/],
    ["with a digest that is none", { ...least, image: { digest: "latest" } }, /digest/],
  ])("is refused %s", async (_, values, named) => {
    await expect(render(values)).rejects.toMatchObject({ stderr: expect.stringMatching(named) });
  });

  test("gives each kind of pod settings that the service accepts, and a volume for the files", async () => {
    for (const values of [[least], [least, intakes]]) {
      const documents = documentsOf(await render(...values));
      const { data } = documents.find(({ kind }) => kind === "ConfigMap");
      for (const { spec } of documents.filter(({ kind }) => kind === "Deployment")) {
        const { containers, volumes } = spec.template.spec;
        const [{ env, volumeMounts }] = containers;
        const config = readConfig({
          ...data,
          PAYBELL_MASTER_KEY_FILE: undefined,
          PAYBELL_MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
          ...Object.fromEntries(
            env.map(({ name, value }: Labels) => [name, value ?? "a-password-or-token-of-the-secret"]),
          ),
          DATABASE_URL: "postgres://paybell@db.internal/paybell",
        });
        expect(config).toMatchObject({ acquirer: "iso8583", trustedProxies: least.trustedProxies });
        const [{ secret }] = volumes;
        const files = secret.items.map(({ path }: Labels) => `/run/secrets/paybell/${path}`);
        expect(files).toEqual([data.PAYBELL_MASTER_KEY_FILE, config.acquirerProfile]);
        expect(config.operatorAddresses).toEqual(["127.0.0.0/8", ...least.operatorAddresses]);
        if (!values.includes(intakes)) continue;
        expect(config).toMatchObject({ kafkaTopic: "completions", kafkaTls: "on", kafkaSasl: "SCRAM-SHA-512" });
        const mount = volumeMounts.find(({ mountPath }: Labels) => mountPath === config.intakeFolder);
        const volume = volumes.find(({ name }: Labels) => name === mount.name);
        expect(volume.persistentVolumeClaim.claimName).toBe(intakes.intakeClaim);
      }
    }
  });

  test("has one role of the database for the instances, and another for the migration alone", async () => {
    const documents = documentsOf(await render(least));
    const pods = documents.filter(({ kind }) => kind === "Deployment").map(({ spec }) => spec.template.spec);
    const secretsOf = (containers: object[]) => [
      ...JSON.stringify(containers).matchAll(/"name":"(paybell[\w-]*)","key"/g),
    ];
    const used = pods.map(({ containers, initContainers = [] }) =>
      [containers, initContainers].map((some) => [...new Set(secretsOf(some).map(([, name]) => name))]),
    );
    expect(used).toEqual([
      [["paybell"], ["paybell", "paybell-owner"]],
      [["paybell"], []],
    ]);
  });

  test("has budgets, services and policies of existing pods, which get more time than a stop needs", async () => {
    const documents = documentsOf(await render(least));
    const deployments = documents.filter(({ kind }) => kind === "Deployment");
    const labels: Labels[] = deployments.map(({ spec }) => spec.template.metadata.labels);
    expect(labels).toHaveLength(2);
    for (const { kind, metadata, spec } of documents) {
      if (kind !== "Service" && kind !== "PodDisruptionBudget") continue;
      const selected = labels.filter((pod) => isOf(spec.selector.matchLabels ?? spec.selector, pod));
      expect(selected, metadata.name).toHaveLength(1);
    }
    const [{ spec: policy }] = documents.filter(({ kind }) => kind === "NetworkPolicy");
    expect(labels.every((pod) => isOf(policy.podSelector.matchLabels, pod))).toBe(true);
    const ports = policy.ingress.map((rule: { ports: Labels[] }) => rule.ports.map(({ port }) => port));
    expect(ports, "each listener has callers of its own").toEqual([["operators"], ["partners"]]);
    for (const { spec } of deployments) {
      expect(spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(120);
      expect(spec.template.spec.containers[0].lifecycle, "the notice of a stop is the wait for proxies").toBe(
        undefined,
      );
      expect(isOf(spec.selector.matchLabels, spec.template.metadata.labels)).toBe(true);
    }
  });
});

const validator = "kubernetes-validate==1.37.0";
const programs = needs("helm", "pip");
// With the schemas of every release.
const module = programs.skip
  ? undefined
  : await fetchOnce(`python/${validator}`, (folder) =>
      run(pathOf("pip"), ["-m", "pip", "install", "--quiet", "--target", folder, validator]),
    );
const needed = programs.skip || module !== undefined ? programs : orSkip([`${validator}: pip cannot fetch it here`]);

test("the manifests match the published schemas, without unknown fields", needed, async () => {
  const folder = mkdtempSync(join(tmpdir(), "paybell-kubernetes-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const env = { ...process.env, PYTHONPATH: module };
  const validate = (manifests: string) => {
    const file = join(folder, "manifests.yaml");
    writeFileSync(file, manifests);
    return run(pathOf("pip"), ["-m", "kubernetes_validate", "--strict", file], { env });
  };
  const manifests = await render(least);
  await expect(validate(manifests)).resolves.toBeDefined();
  await expect(validate(await render(least, intakes))).resolves.toBeDefined();
  await expect(validate(manifests.replace("readinessProbe", "readyProbe"))).rejects.toMatchObject({
    stdout: expect.stringContaining("readyProbe"),
  });
});
