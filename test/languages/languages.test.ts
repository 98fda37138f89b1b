import { randomBytes, randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ReceiverOptions, receiver } from "@paybell/partner";
import { certify, countsOf, reportJson, sealerKeys } from "@paybell/partner/certify";
import { type TestDelivery, type TestIpn, testDelivery } from "@paybell/partner/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../support/ports.ts";
import { needs } from "../support/programs.ts";
import { type ClientPackage, packages } from "./languages.ts";
import { judged, oddVectors, type Vector } from "./odd-vectors.ts";
import { type ProgramResponse, run, type Server, send, startServer } from "./programs.ts";

/** Ends what hangs, a moment before the test that started it ends: a busy machine compiles for minutes. */
const timeoutMs = 880_000;

const vectorsFile = join(import.meta.dirname, "../../docs/partner/vectors.json");
type Published = Readonly<Record<"vectors" | "extended", readonly Vector[]>>;
const { vectors, extended } = JSON.parse(await readFile(vectorsFile, "utf8")) as Published;
const [usual] = vectors;
if (usual === undefined) throw new Error("there are no vectors");
const odd = oddVectors(usual);
const folder = await mkdtemp(join(tmpdir(), "paybell-languages-"));
afterAll(() => rm(folder, { recursive: true, force: true }));

test("most unusual inputs are refused, but not all", () => {
  const accepted = odd.filter(({ ipn }) => ipn !== undefined);
  expect(accepted.length).toBeGreaterThan(30);
  expect(odd.length - accepted.length).toBeGreaterThan(100);
});

for (const one of packages) {
  describe(`the package in ${one.name}`, needs(...one.needs), () => {
    const out = join(folder, `package-${one.name}`);
    holdToTheContract(one, out);
    holdToItsOwn(one, out);
  });
}

function holdToItsOwn(one: ClientPackage, out: string): void {
  test.for(Object.entries(one.checks))("passes %s", async ([, check]) => {
    const { exitCode, stdout, stderr } = await run(check(out), { cwd: out, timeoutMs });
    expect(exitCode, stdout + stderr).toBe(0);
  });
}

function holdToTheContract(language: ClientPackage, out: string): void {
  beforeAll(async () => {
    await mkdir(out, { recursive: true });
    const command = language.build(out);
    const { exitCode, stdout, stderr } = await run(command, { timeoutMs });
    expect(exitCode, `${command.join(" ")}\n${stdout}${stderr}`).toBe(0);
  });

  test("accepts each vector with the exact IPN, or refuses it", async () => {
    const { exitCode, stdout, stderr } = await run(language.vectors(out, vectorsFile), { timeoutMs });
    expect(linesOf(stdout)).toEqual(vectors.map(({ name }) => `ok ${name}`));
    expect(stderr).toBe("");
    expect(exitCode).toBe(0);
  });

  test("agrees with @paybell/partner on the code of each refusal, on extended IPNs and on unusual inputs", async () => {
    const file = join(out, "judged.json");
    const all = [...vectors.map(judged), ...extended, ...odd];
    await writeFile(file, JSON.stringify({ vectors: all }));
    const { stdout, stderr } = await run(language.vectors(out, file), { timeoutMs });
    expect(linesOf(stdout)).toEqual(all.map(({ name }) => `ok ${name}`));
    expect(stderr).toBe("");
  });

  test("reports each vector that expects something else", async () => {
    const file = join(out, "wrong.json");
    await writeFile(file, JSON.stringify({ vectors: vectors.map(wrong) }));
    const { exitCode, stdout } = await run(language.vectors(out, file), { timeoutMs });
    expect(linesOf(stdout)).toEqual(vectors.map(({ name }) => `FAIL ${name}`));
    expect(exitCode).toBe(1);
  });

  describe.each(agreements)("with $cipher, signed: $signed", (agreement) => {
    const options = agreement.options();
    const home = join(out, agreement.cipher);
    let server: Server;

    beforeAll(async () => {
      await mkdir(home, { recursive: true });
      const file = join(home, "agreement.json");
      await writeFile(file, JSON.stringify(options));
      const port = await freePort();
      const surroundings = { cwd: home, env: { PORT: String(port) }, timeoutMs };
      server = await startServer(language.serve(out, file, port), port, surroundings);
    });
    afterAll(async () => {
      await server?.stop();
    });

    test.each([
      ["a card IPN", { kind: "card", ipn: { id: randomUUID(), merchantName: "Quán Cà Phê ☕ 😀 <&>" } }],
      [
        `a settlement of ${agreement.transactions} transactions`,
        { kind: "settlement", ipn: { id: randomUUID(), settlementList: settled(agreement.transactions) } },
      ],
    ] as const)("stores %s and answers 2xx", async (_, what) => {
      const delivery = testDelivery(options, what);

      expect((await deliver(server, delivery)).status, server.output()).toBe(204);

      const { ipn } = receiver(options).open(delivery.body, delivery.headers);
      expect(JSON.parse(await readFile(inboxFile(home, what.ipn.id), "utf8"))).toEqual(ipn);
    });

    test("stores an IPN once, however often it comes", async () => {
      const ipn = { id: randomUUID() };
      const attempts = [1, 2, 3].map((attempt) => testDelivery(options, { kind: "card", ipn }, { attempt }));
      const answers = await Promise.all(attempts.map((attempt) => deliver(server, attempt)));
      await writeFile(inboxFile(home, ipn.id), "what was made of it since");

      answers.push(await deliver(server, testDelivery(options, { kind: "card", ipn }, { attempt: 4 })));

      expect(answers.map(({ status }) => status)).toEqual([204, 204, 204, 204]);
      expect(await readFile(inboxFile(home, ipn.id), "utf8")).toBe("what was made of it since");
      expect((await readdir(join(home, "inbox"))).filter((name) => !/^[0-9a-f-]{36}\.json$/.test(name))).toEqual([]);
    });

    test("refuses unauthentic requests with the same 400, and stores nothing", async () => {
      const stored = await readdir(join(home, "inbox"));
      const good = testDelivery(options, sale());
      const answers: ProgramResponse[] = [];
      for (const { body, headers } of forgeries(options, good)) {
        answers.push(await send(server.url, "POST", headers, body));
      }

      const stranger = answers.map(({ status, headers: { date: _, ...headers }, body }) => ({ status, headers, body }));
      expect(stranger, server.output()).toEqual(stranger.map(() => ({ ...stranger[0], status: 400, body: "" })));
      expect(await readdir(join(home, "inbox"))).toEqual(stored);
      expect((await deliver(server, good)).status).toBe(204);
    });

    test("verifies the sender before it decrypts anything", async () => {
      const other = freshOptions({});
      const { encryptionKey, webhookSecret } = other;
      const reason = server.said(/refused\W+webhook.signature/);

      expect((await deliver(server, testDelivery({ ...options, encryptionKey, webhookSecret }, sale()))).status).toBe(
        400,
      );
      await reason;
    });

    test("passes certify in every case", async () => {
      const report = await certify({
        url: new URL(server.url),
        keys: sealerKeys(options),
        run: randomUUID().slice(0, 8),
        nowMs: Date.now,
        limits: { pieces: 2, gapMs: 10, connectTimeoutMs: timeoutMs },
      });
      expect(reportJson(report), server.output()).toMatchObject({ passed: true });
      expect(countsOf(report.results)).toMatchObject({ failed: 0, notRun: 0 });
    });

    test("answers 405 to another method", async () => {
      expect((await send(server.url, "GET", {}, "")).status).toBe(405);
      expect((await send(server.url, "PUT", testDelivery(options, sale()).headers, "")).status).toBe(405);
    });

    test("asks for the IPN again with 500 when it cannot store it", async () => {
      const delivery = testDelivery(options, { kind: "card", ipn: { id: "../no-file-name" } });
      expect((await deliver(server, delivery)).status).toBe(500);
    });
  });
}

/** Every kind of signing with one cipher each, and every encoding. The vectors cover all combinations. */
const agreements = [
  {
    cipher: "aes-256-gcm",
    signed: "specification",
    transactions: 2,
    options: () => freshOptions({ cipher: "aes-256-gcm" }),
  },
  {
    cipher: "aes-256-cbc",
    signed: "whole",
    transactions: 50_000,
    options: () => freshOptions({ cipher: "aes-256-cbc", encoding: "hex", signing: { mode: "whole" } }),
  },
  {
    cipher: "jwe",
    signed: "agreed",
    transactions: 0,
    options: () => {
      const card = ["id", "transaction_type", "status", "amount", "merchantName"];
      const settlement = ["id", "transaction_type", "status", "totalAmount", "deviceId"];
      return freshOptions({ cipher: "jwe", signing: { mode: "fields", card, settlement } });
    },
  },
] as const satisfies readonly { cipher: string; signed: string; transactions: number; options: () => FreshOptions }[];

type FreshOptions = ReceiverOptions & {
  readonly encryptionKey: readonly { id: string; key: string }[];
  readonly signingKey: string;
  readonly webhookSecret: string;
};

function freshOptions(more: Partial<ReceiverOptions>): FreshOptions {
  const key = () => randomBytes(32).toString("base64");
  return {
    ...more,
    encryptionKey: [{ id: randomUUID(), key: key() }],
    signingKey: key(),
    webhookSecret: `whsec_${key()}`,
  };
}

function sale(): TestIpn {
  return { kind: "card", ipn: { id: randomUUID() } };
}

function settled(count: number): { reqId: string; refNo: string }[] {
  return Array.from({ length: count }, (_, at) => ({ reqId: randomUUID(), refNo: String(at).padStart(12, "0") }));
}

function inboxFile(home: string, id: string): string {
  return join(home, "inbox", `${id}.json`);
}

function deliver(server: Server, { body, headers }: TestDelivery): Promise<ProgramResponse> {
  return send(server.url, "POST", headers, body);
}

function forgeries(options: FreshOptions, good: TestDelivery): TestDelivery[] {
  const other = freshOptions({});
  const without = (name: string) => Object.fromEntries(Object.entries(good.headers).filter(([key]) => key !== name));
  // Vectors test the limit itself: here a busy machine may take a while until it sends them.
  const lateMs = 3_600_000;
  const late = { ...options, clock: { nowMs: () => Date.now() - lateMs } };
  const early = { ...options, clock: { nowMs: () => Date.now() + lateMs } };
  return [
    {
      ...good,
      body: good.body.replace(/.(.{40}"\})$/, (end, rest: string) => (end.startsWith("A") ? "B" : "A") + rest),
    },
    { ...good, body: JSON.stringify(JSON.parse(good.body), null, 1) },
    { ...good, body: "" },
    { ...good, headers: without("webhook-id") },
    { ...good, headers: without("webhook-timestamp") },
    { ...good, headers: without("webhook-signature") },
    testDelivery({ ...options, webhookSecret: other.webhookSecret }, sale()),
    testDelivery({ ...options, encryptionKey: other.encryptionKey }, sale()),
    testDelivery({ ...options, signingKey: other.signingKey }, sale()),
    testDelivery(late, sale()),
    testDelivery(early, sale()),
  ];
}

/** The vector with another expectation: a changed IPN, no IPN, or an IPN in place of a refusal. */
function wrong(vector: Vector, at: number): Vector {
  if (vector.ipn === undefined) return { ...vector, ipn: {} };
  const { ipn, ...rest } = vector;
  return at % 2 === 0 ? rest : { ...rest, ipn: { ...ipn, status: "INIT" } };
}

/** Each line with its words one space apart from the result. */
function linesOf(stdout: string): string[] {
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => line.replace(/^(ok|FAIL) +/, "$1 "));
}
