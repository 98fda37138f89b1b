import { createHmac, randomBytes } from "node:crypto";
import { chmodSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { hmacKey, sign } from "@paybell/contract";
import type { ReceiverOptions } from "@paybell/partner";
import { IpnRefused } from "@paybell/partner";
import { testDelivery, testEnvelope } from "@paybell/partner/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CommandLine, type StartOptions } from "./command-line.ts";

const key = () => randomBytes(32).toString("base64");
const keys = { encryptionKey: key(), signingKey: key(), webhookSecret: `whsec_${key()}` };
const content = {
  aid: "A0000000031010",
  amount: "150000",
  approveCode: "831000",
  isoResponseCode: "00",
  merchantTransId: "order-1",
  cardScheme: "Visa",
  tid: "",
  mid: "M1",
  traceNo: "000123",
  batchNo: "000001",
  id: "t-1",
  status: "SUCCESS",
  transaction_type: "SALE",
};
const signedText =
  "aid=A0000000031010&amount=150000&approveCode=831000&isoResponseCode=00&merchantTransId=order-1" +
  "&isoResponseCode=00&cardScheme=Visa&tid=&mid=M1&traceNo=000123&batchNo=000001";

let line: CommandLine;
beforeEach(() => {
  line = new CommandLine();
  line.write("keys.json", keys);
});
afterEach(() => line.remove());

interface Explained {
  readonly authentic: boolean;
  readonly findings: readonly { step: string; level: string; text: string; remedy?: string }[];
  readonly signedString?: string;
  readonly expected?: string;
  readonly found?: string;
  readonly firstDifference?: { position: number; ours: string; theirs: string };
  readonly ipn?: Readonly<Record<string, string>>;
  readonly yourSignedString?: { firstDifference: { position: number; ours: string; theirs: string } | null };
}

async function open(capture: string | object, args: readonly string[] = [], start: StartOptions = {}) {
  line.write("capture", capture);
  const ran = await line.run(["open", "capture", "--credentials", "keys.json", "--json", ...args], start);
  return { code: ran.code, explained: ran.json<Explained>(), ran };
}

function finding({ findings }: Explained, step: string) {
  return findings.find((one) => one.step === step);
}

function delivery(options: Partial<ReceiverOptions> = {}) {
  return testDelivery({ ...keys, ...options }, { kind: "card" });
}

/** An IPN with any signature, correctly encrypted. */
function signedBy(signature: string, wire: object = content) {
  return testEnvelope(keys, JSON.stringify({ ...wire, signature }));
}

describe("a capture", () => {
  const { body, headers } = delivery();
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);

  test.each([
    ["the raw body", body],
    ["the raw body with a line end", `${body}\n`],
    ["data alone", JSON.parse(body).data],
    ["body and headers", { body, headers }],
    ["data and headers", { data: JSON.parse(body).data, headers }],
    ["what notifications show prints", { id: "x", sealed: { body, headers } }],
    ["headers in capitals, as pairs", { body, headers: Object.entries(headers).map(([n, v]) => [n.toUpperCase(), v]) }],
    ["a request", ["POST /ipn HTTP/1.1", ...lines, "", body].join("\r\n")],
    ["a request as curl -v shows it", ["> POST /ipn HTTP/1.1", ...lines.map((l) => `> ${l}`), "> ", body].join("\n")],
    ["header lines alone, and a line end that an editor added", [...lines, "", body, ""].join("\n")],
  ])("is read as %s", async (_, capture) => {
    const { code, explained, ran } = await open(capture);
    expect([code, explained.authentic], ran.stdout).toEqual([0, true]);
  });

  test("is opened with keys of an older shape, whose file is rewritten with a warning", async () => {
    const version = { id: "1", key: keys.encryptionKey };
    const lists = { signingKeys: [keys.signingKey], webhookSecrets: [keys.webhookSecret] };
    const written = { partnerId: "p-1", encryptionKeys: [version], ...lists };
    const path = join(line.folder, line.write("keys.json", written));
    chmodSync(path, 0o640);

    const first = await open(body);
    const again = await open(body);

    expect([first.code, first.ran.stderr]).toEqual([
      0,
      "Warning: keys.json was in an older shape, and is rewritten.\n",
    ]);
    expect([again.code, again.ran.stderr]).toEqual([0, ""]);
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({
      partnerId: "p-1",
      encryptionKey: [version],
      signingKey: [{ key: keys.signingKey }],
      webhookSecret: [{ key: keys.webhookSecret }],
    });
    expect(statSync(path).mode & 0o777).toBe(0o640);
  });

  test("is also read from standard input, and explained to a person", async () => {
    const { code, stdout } = await line.run(["open", "-", "--credentials", "keys.json"], { stdin: body });
    expect(code).toBe(0);
    expect(stdout).toContain("Authentic.");
    expect(stdout).toContain("opened with encryptionKey");
    expect(stdout).toContain("Signed string, as configured\n  aid=");
  });

  test.each([
    ["nothing", "", "empty_capture"],
    ["no file", undefined, "unreadable"],
  ])("%s ends with 2", async (_, capture, code) => {
    if (capture !== undefined) line.write("capture", capture);
    const ran = await line.run(["open", "capture", "--credentials", "keys.json", "--json"]);
    expect(ran.code).toBe(2);
    expect(JSON.parse(ran.stderr)).toMatchObject({ error: { code } });
  });

  test.each([
    ["<html></html>", "HTML"],
    ["data=abc", "form"],
    ["[object Object]", "converted to a string"],
    [JSON.stringify('{"data": "abc"}'), "a string within a string"],
    ['{"data": "abc', "cut short"],
    ['{"amount": "1", "transaction_type": "SALE"}', "opened already"],
    ['{"data": "abc", "more": "1"}', "more"],
  ])("of %s is reported as such", async (capture, word) => {
    const { code, explained } = await open(capture);
    expect(code).toBe(1);
    expect(finding(explained, "body")?.text).toContain(word);
  });

  test.each(["[object Object]", '"text"'])("of %s has the library's remedy", async (capture) => {
    const { remedy } = new IpnRefused("stringified_body");
    expect(finding((await open(capture)).explained, "body")).toMatchObject({ level: "wrong", remedy });
  });
});

describe("the headers", () => {
  test.each([
    [3, "3 h old"],
    [-3, "3 h ahead of this machine's clock"],
  ])("one of %d hours ago is reported, and does not count as forged", async (hours, words) => {
    const { code, explained } = await open(delivery(), [], { nowMs: () => Date.now() + hours * 3_600_000 });
    expect(code).toBe(0);
    expect(finding(explained, "freshness")).toMatchObject({ level: "note", text: expect.stringContaining(words) });
  });

  test("a body that was parsed and re-serialised is reported as such", async () => {
    const { body, headers } = delivery();
    const { code, explained } = await open({ body: JSON.stringify(JSON.parse(body), null, 2), headers });
    expect(code).toBe(1);
    expect(finding(explained, "headers")?.remedy).toContain("raw bytes");
    expect(finding(explained, "signature")?.level).toBe("right");
  });

  test("a missing one, another secret, and swapped keys are distinguished", async () => {
    const { body, headers } = delivery();
    const { "webhook-timestamp": _, ...two } = headers;
    expect(finding((await open({ body, headers: two })).explained, "headers")?.text).toContain("webhook-timestamp is");

    const other = delivery({ webhookSecret: `whsec_${key()}` });
    expect(finding((await open(other)).explained, "headers")?.text).toContain("not that of this body");

    const swapped = delivery({ webhookSecret: `whsec_${keys.signingKey}`, signingKey: key() });
    expect(finding((await open(swapped)).explained, "headers")?.remedy).toContain("signingKey: the keys are swapped");
  });
});

describe("the seal", () => {
  const sealings = [
    ["aes-256-gcm", "base64"],
    ["aes-256-gcm", "base64url"],
    ["aes-256-gcm", "hex"],
    ["aes-256-cbc", "base64"],
    ["aes-256-cbc", "hex"],
    ["jwe", "base64"],
  ] as const;

  test.each(sealings)("of %s in %s opens when it is configured", async (cipher, encoding) => {
    const { code, ran } = await open(delivery({ cipher, encoding }), ["--cipher", cipher, "--encoding", encoding]);
    expect(code, ran.stdout).toBe(0);
  });

  test("is opened as the environment says, and an option overrides it", async () => {
    const agreed = delivery({ cipher: "aes-256-cbc", encoding: "hex", signing: { mode: "whole" } });
    const env = {
      PAYBELL_CIPHER: "aes-256-cbc",
      PAYBELL_ENCODING: "hex",
      PAYBELL_SIGNING: "whole",
      PAYBELL_FIELDS: "",
    };
    expect((await open(agreed, [], { env })).code).toBe(0);
    expect((await open(agreed, ["--encoding", "base64"], { env })).code).toBe(1);
    line.write("capture", agreed);
    for (const [name, value] of [
      ["PAYBELL_FIELDS", "extended,all"],
      ["PAYBELL_SIGNING", '{"mode": "fields", "card": []}'],
    ] as const) {
      const wrong = await line.run(["open", "capture", "--credentials", "keys.json"], {
        env: { ...env, [name]: value },
      });
      expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("in the environment: ")]);
    }
  });

  test.each(sealings.slice(1))("of %s in %s names the setting when it is not", async (cipher, encoding) => {
    const { code, explained } = await open(delivery({ cipher, encoding }));
    expect(code).toBe(1);
    const wanted = cipher === "aes-256-gcm" ? encoding : cipher;
    expect(finding(explained, "seal")).toMatchObject({
      level: "wrong",
      remedy: expect.stringContaining(`to ${wanted}`),
    });
    expect(finding(explained, "signature")?.level).toBe("right");
  });

  test("swapped keys, an unknown key and a changed byte are distinguished", async () => {
    const swapped = delivery({ encryptionKey: keys.signingKey, signingKey: keys.encryptionKey });
    const { explained } = await open(swapped);
    expect(finding(explained, "seal")?.remedy).toContain("give what you call signingKey as encryptionKey");
    expect(finding(explained, "signature")?.remedy).toContain("give what you call encryptionKey as signingKey");

    const other = await open(delivery({ encryptionKey: key() }));
    expect(finding(other.explained, "seal")?.text).toContain("no key opens it");
    expect(finding(other.explained, "headers")?.level).toBe("right");

    const { body, headers } = delivery();
    const changed = body.replace(/"(.{40})(.)/, (_, before, one) => `"${before}${one === "A" ? "B" : "A"}`);
    const forged = await open({ body: changed, headers });
    expect(finding(forged.explained, "seal")?.level).toBe("wrong");
    expect(finding(forged.explained, "headers")?.level).toBe("wrong");
  });

  test("a space in place of a plus is reported", async () => {
    const { body } = delivery();
    const { data } = JSON.parse(body) as { data: string };
    const { explained } = await open({ data: `${data.replaceAll("+", " ")}`, headers: {} });
    expect(data).toContain("+");
    expect(finding(explained, "seal")?.remedy).toContain("a + became a space");
  });

  test("both versions of a rotated key open", async () => {
    const { encryptionKey: old } = keys;
    line.write("keys.json", {
      ...keys,
      encryptionKey: [
        { id: "new", key: key() },
        { id: "old", key: old },
      ],
    });
    const { code, explained } = await open(delivery());
    expect(code).toBe(0);
    expect(finding(explained, "seal")?.text).toContain("encryptionKey[1]");
    const ofEnvironment = { PAYBELL_ENCRYPTION_KEY: `${key()}, ${key()}, ${old}` };
    expect(finding((await open(delivery(), [], { env: ofEnvironment })).explained, "seal")?.text).toContain("[2]");
  });
});

describe("the signature", () => {
  test("shows the exact signed string, the one expected and the one found", async () => {
    const wrong = "0".repeat(64);
    const { code, explained } = await open(signedBy(wrong));
    expect(code).toBe(1);
    expect(explained.signedString).toBe(signedText);
    expect(explained.expected).toBe(sign(signedText, hmacKey(Buffer.from(keys.signingKey, "base64"))));
    expect(explained.found).toBe(wrong);
    expect(finding(explained, "signature")?.remedy).toContain("--compare");
  });

  const hmac = (text: string, secret: Buffer | string = Buffer.from(keys.signingKey, "base64")) =>
    createHmac("sha256", secret).update(text).digest("hex");

  test.each([
    ["an empty value left out", signedText.replace("tid=&", ""), 8, "tid=", "mid=M1", "keeps its key"],
    [
      "isoResponseCode once",
      signedText.replace("order-1&isoResponseCode=00", "order-1"),
      6,
      "isoResponseCode=00",
      "cardScheme=Visa",
      "twice",
    ],
    [
      "the sample's names",
      signedText.replace("approveCode", "approve_code"),
      3,
      "approveCode=831000",
      "approve_code=831000",
      "tables' names",
    ],
    [
      "cardScheme in capitals",
      signedText.replace("Visa", "VISA"),
      7,
      "cardScheme=Visa",
      "cardScheme=VISA",
      "as they are sent",
    ],
  ])("finds %s, and the first differing field", async (_, text, position, ours, theirs, remedy) => {
    const { explained } = await open(signedBy(hmac(text)));
    expect(finding(explained, "signature")).toMatchObject({ level: "wrong", remedy: expect.stringContaining(remedy) });
    expect(explained.firstDifference).toMatchObject({ position, ours, theirs });
  });

  test.each([
    ["another mode", hmac(JSON.stringify(content)), "RFC 8785"],
    ["a key that was not decoded", hmac(signedText, keys.signingKey), "decode the base64 first"],
    ["the encryption key", hmac(signedText, Buffer.from(keys.encryptionKey, "base64")), "swapped"],
    ["none", "", "Compare signingKey"],
  ])("finds %s", async (_, signature, remedy) => {
    const { code, explained } = await open(signedBy(signature));
    expect(code).toBe(1);
    expect(finding(explained, "signature")?.remedy).toContain(remedy);
  });

  test("of the whole IPN names the setting, either way round", async () => {
    const whole = await open(delivery({ signing: { mode: "whole" } }));
    expect(finding(whole.explained, "signature")?.remedy).toBe("Set signing to whole.");
    expect((await open(delivery({ signing: { mode: "whole" } }), ["--signing", "whole"])).code).toBe(0);
    const fields = await open(delivery(), ["--signing", "whole"]);
    expect(finding(fields.explained, "signature")?.remedy).toBe("Set signing to fields.");
  });

  test("your own signed string is compared field by field", async () => {
    const same = await open(signedBy("x"), ["--signed-string", signedText]);
    expect(same.explained.yourSignedString).toEqual({ firstDifference: null });
    const other = await open(signedBy("x"), ["--signed-string", signedText.replace("150000", "150000.00")]);
    expect(other.explained.yourSignedString?.firstDifference).toMatchObject({
      position: 2,
      theirs: "amount=150000.00",
    });
  });
});

describe("the content", () => {
  test.each([
    ["both names of a field", { ...content, approve_code: "1" }, "approveCode and approve_code"],
    ["a number", { ...content, amount: 5 }, "amount"],
  ])("with %s names it", async (_, wire, word) => {
    const { explained } = await open(testEnvelope(keys, JSON.stringify(wire)));
    expect(finding(explained, "content")).toMatchObject({ level: "wrong", text: expect.stringContaining(word) });
  });

  test("with a duplicate key, or with the sample's names, is reported", async () => {
    const twice = await open(testEnvelope(keys, '{"id": "1", "id": "2"}'));
    expect(finding(twice.explained, "content")?.text).toContain("twice");
    const sample = await open(testDelivery(keys, { kind: "card" }, { wireNames: "sample" }));
    expect(sample.code).toBe(0);
    expect(finding(sample.explained, "content")?.text).toContain("approve_code for approveCode");
  });

  test("--compare asks for the transaction, and names each field that is another, signed ones first", async () => {
    const capture = delivery();
    const { ipn = {} } = (await open(capture)).explained;
    const { id, amount, refId } = ipn;
    const asked: string[] = [];
    const compare = (known: object, status = 200) => {
      const answer: typeof fetch = async (url) => {
        asked.push(String(url));
        return Response.json(known, { status });
      };
      const env = { PAYBELL_URL: "https://paybell.example", PAYBELL_API_KEY: "pb_key" };
      return line.run(["open", "capture", "--credentials", "keys.json", "--compare", "--json"], { env, fetch: answer });
    };
    const comparedTo = async (known: object, status?: number) =>
      (await compare(known, status)).json<{ compared: object }>().compared;
    expect(await comparedTo({ ...ipn, signature: "another" })).toEqual({ transaction: id, differences: [] });
    expect(await comparedTo({ ...ipn, refId: "r", amount: "1" })).toEqual({
      transaction: id,
      differences: [
        { field: "amount", signed: true, captured: amount, service: "1" },
        { field: "refId", signed: false, captured: refId, service: "r" },
      ],
    });
    const problem = { code: "x", detail: "It is unknown." };
    expect(await comparedTo(problem, 404)).toEqual({ transaction: null, why: "It is unknown." });
    expect((await compare(problem, 503)).code).toBe(3);
    expect(new Set(asked)).toEqual(new Set([`https://paybell.example/v1/transactions/${id}`]));
  });

  test("untrusted characters cannot control the terminal", async () => {
    const wire = { ...content, merchantTransId: "\u001b[2J\u202e" };
    line.write("capture", testEnvelope(keys, JSON.stringify({ ...wire, signature: "x" })));
    const { stdout } = await line.run(["open", "capture", "--credentials", "keys.json"]);
    expect(stdout).toContain("\\u{1b}[2J\\u{202e}");
    for (const character of ["\u001b", "\u202e"]) expect(stdout).not.toContain(character);
  });
});

test("no key is ever shown, and a wrong one is named", async () => {
  const ran = [
    await open(delivery()),
    await open(delivery({ encryptionKey: key() })),
    await open(signedBy("0".repeat(64))),
  ];
  line.write("keys.json", { ...keys, signingKey: "not-a-key-at-all" });
  line.write("capture", delivery());
  const wrong = await line.run(["open", "capture", "--credentials", "keys.json"]);
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toMatch(/signingKey/);
  const said = [...ran.map(({ ran: one }) => one.stdout + one.stderr), wrong.stderr].join("");
  for (const secret of [...Object.values(keys), "not-a-key-at-all"]) expect(said).not.toContain(secret);
});
