import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Writable } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "../../../../test/support/temporary.ts";
import { answerTo, FakeHost } from "../acquirer/iso8583/link/fake-host.fixture.ts";
import type { IsoMessage } from "../acquirer/iso8583/message/codec.ts";
import { runAcquirerTest } from "./acquirer-test.ts";

const exampleProfile = join(import.meta.dirname, "../../../../docs/operator/acquirer-profile.json");
const names: Readonly<Record<string, string>> = { "0400": "reversal", "0500": "settlement" };

/** By its type and processing code. */
function nameOf({ mti, fields }: IsoMessage): string {
  return names[mti] ?? (fields.get(3) === "020000" ? "void" : "sale");
}

/** A run against a host that declines what has this name. */
async function run(declined: string, profile = exampleProfile) {
  const host = await FakeHost.listen();
  onTestFinished(() => host.close());
  host.answer = (request) => {
    const numbers: readonly [number, string][] = [...request.fields, [37, "123456789012"], [38, "A12345"]];
    const approved = { mti: request.mti, fields: new Map(numbers) };
    return answerTo(approved, nameOf(request) === declined ? "05" : "00");
  };
  const stream = () => new Writable({ write: (_, __, done) => done() });
  const env = {
    PAYBELL_ACQUIRER: "iso8583",
    PAYBELL_ACQUIRER_PROFILE: profile,
    PAYBELL_ACQUIRER_HOSTS: `127.0.0.1:${host.port}`,
    PAYBELL_ACQUIRER_TLS: "off",
  };
  const process = { stdout: stream(), stderr: stream(), env } as unknown as NodeJS.Process;
  const card = { mid: "M00000000000001", tid: "T0000001", token: "tok_approve", amount: "10000", currency: "VND" };
  const code = await runAcquirerTest({ process }, { ...card, batch: "000001", trace: "999999", json: false });
  const sent = host.heard.filter(({ mti }) => !mti.startsWith("08"));
  const totals = sent.at(-1)?.fields.get(63);
  const tokens = sent.map(({ fields }) => fields.get(48));
  return { code, totals, tokens, sent: sent.map((message) => `${nameOf(message)} ${message.fields.get(11)}`) };
}

const total = (quantity: string, minor: string) => quantity.padStart(5, "0") + minor.padStart(14, "0");
const nothing = total("0", "0");

test.each([
  ["nothing", 0, ["sale 000001", "void 000002", "sale 000003", "reversal 000003", "settlement 000005"], "1"],
  [
    "the Void",
    1,
    ["sale 000001", "void 000002", "reversal 000001", "sale 000004", "reversal 000004", "settlement 000006"],
    "0",
  ],
  ["each Sale", 1, ["sale 000001", "reversal 000001", "sale 000003", "reversal 000003", "settlement 000005"], "0"],
] as const)("a test of a host that declines %s leaves nothing charged", async (declined, code, sent, voided) => {
  const { tokens: _, ...ran } = await run(declined === "the Void" ? "void" : declined === "each Sale" ? "sale" : "");
  const both = voided === "1" ? total("1", "1000000") : nothing;
  expect(ran).toEqual({ code, sent, totals: both + both + nothing });
});

test("a test of a host that wants cards again sends them with the Void and the Reversal", async () => {
  const wanting = JSON.parse(await readFile(exampleProfile, "utf8"));
  for (const name of ["VOID", "REVERSAL"]) Object.assign(wanting.messages[name].fields, { "48": "{cardToken}" });
  const file = join(temporaryFolder(), "profile.json");
  await writeFile(file, JSON.stringify(wanting));
  const token = "tok_approve";
  expect((await run("", file)).tokens).toEqual([token, token, token, token, undefined]);
});
