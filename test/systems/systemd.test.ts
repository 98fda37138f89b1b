import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { ops, run } from "../ops/files.ts";
import { needs, pathOf } from "../support/programs.ts";

test(
  "systemd accepts the unit, without a word, and names a setting that it does not know",
  needs("systemd"),
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "paybell-systemd-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const unit = join(folder, "paybell.service");
    cpSync(join(ops, "systemd/paybell.service"), unit);
    const verify = async () => {
      const { stdout, stderr } = await run(pathOf("systemd"), ["verify", unit]);
      return `${stdout}${stderr}`;
    };
    expect(await verify()).toBe("");
    writeFileSync(unit, readFileSync(unit, "utf8").replace("ProtectClock=", "ProtectClocks="));
    expect(await verify()).toContain("ProtectClocks");
  },
);

test("the unit exposes little of the machine, and writes no core", needs("systemd"), async () => {
  const folder = mkdtempSync(join(tmpdir(), "paybell-systemd-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const unit = join(folder, "paybell.service");
  const shipped = readFileSync(join(ops, "systemd/paybell.service"), "utf8");
  const judge = (text: string) => {
    writeFileSync(unit, text);
    // In tenths.
    return run(pathOf("systemd"), ["security", "--offline=true", "--no-pager", "--threshold=20", unit]);
  };
  await expect(judge(shipped)).resolves.toBeDefined();
  await expect(judge(shipped.replaceAll(/^SystemCall.*$/gm, ""))).rejects.toMatchObject({ code: 1 });
  expect(shipped).toMatch(/^LimitCORE=0$/m);
});
