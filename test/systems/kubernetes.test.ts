import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { ops, repository, run, turnedOn } from "../ops/files.ts";
import { needs, orSkip, pathOf } from "../support/programs.ts";

const validator = "kubernetes-validate==1.37.0";
const pip = needs("pip");
const module = pip.skip ? undefined : await fetchModule();
const needed = pip.skip || module !== undefined ? pip : orSkip([`${validator}: pip cannot fetch it here`]);

/** Fetched once, with the schemas of every release; undefined if its package index does not answer. */
async function fetchModule(): Promise<string | undefined> {
  const folder = join(repository, "node_modules/.cache/python", validator);
  if (existsSync(folder)) return folder;
  const own = `${folder}-${process.pid}`;
  await mkdir(own, { recursive: true });
  try {
    await promisify(execFile)(pathOf("pip"), ["-m", "pip", "install", "--quiet", "--target", own, validator]);
    renameSync(own, folder);
    return folder;
  } catch {
    rmSync(own, { recursive: true, force: true });
    return undefined;
  }
}

test("the manifests match the published schemas, without unknown fields", { timeout: 300_000, ...needed }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "paybell-kubernetes-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const env = { ...process.env, PYTHONPATH: module };
  const validate = (manifests: string) => {
    const file = join(folder, "manifests.yaml");
    writeFileSync(file, manifests);
    return run(pathOf("pip"), ["-m", "kubernetes_validate", "--strict", file], { env });
  };
  const manifests = readFileSync(join(ops, "kubernetes/paybell.yaml"), "utf8");
  await expect(validate(manifests)).resolves.toBeDefined();
  await expect(validate(turnedOn(manifests))).resolves.toBeDefined();
  await expect(validate(manifests.replace("readinessProbe", "readyProbe"))).rejects.toMatchObject({
    stdout: expect.stringContaining("readyProbe"),
  });
});
