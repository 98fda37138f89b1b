import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { ops, run } from "../ops/files.ts";
import { needs, pathOf } from "../support/programs.ts";

const units = readdirSync(join(ops, "systemd")).filter((name) => /\.(?:service|timer)$/.test(name));

/** The units in a folder of their own, with a program that is installed here. */
function installed(change: (unit: string) => string = (same) => same): string {
  const folder = mkdtempSync(join(tmpdir(), "paybell-systemd-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const name of units) {
    const text = readFileSync(join(ops, "systemd", name), "utf8");
    const there = text.replaceAll(/(?<=^Exec\w+=)\S+/gm, "/bin/true");
    writeFileSync(join(folder, name.replace("@", "@1")), change(there));
  }
  return folder;
}

test(
  "systemd accepts the units, without a word, and names a setting that it does not know",
  needs("systemd"),
  async () => {
    const verify = async (folder: string) => {
      const files = readdirSync(folder).map((name) => join(folder, name));
      const { stdout, stderr } = await run(pathOf("systemd"), ["verify", ...files]);
      return `${stdout}${stderr}`;
    };
    expect(units.length).toBe(4);
    expect(await verify(installed())).toBe("");
    expect(await verify(installed((unit) => unit.replace("ProtectClock=", "ProtectClocks=")))).toContain(
      "ProtectClocks",
    );
  },
);

test("the instances expose little of the machine, and write no core", needs("systemd"), async () => {
  const judge = (change?: (unit: string) => string) => {
    const unit = join(installed(change), "paybell@1.service");
    // In tenths.
    return run(pathOf("systemd"), ["security", "--offline=true", "--no-pager", "--threshold=20", unit]);
  };
  await expect(judge()).resolves.toBeDefined();
  await expect(judge((unit) => unit.replaceAll(/^SystemCall.*$/gm, ""))).rejects.toMatchObject({ code: 1 });
  for (const name of units.filter((one) => one.endsWith(".service")))
    expect(readFileSync(join(ops, "systemd", name), "utf8"), name).toMatch(/^LimitCORE=0$/m);
});
