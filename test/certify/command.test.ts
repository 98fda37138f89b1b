import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { run } from "../../packages/cli/src/index.ts";
import { caseCodes, cases } from "../../packages/partner/src/certify/certify.ts";
import { findings } from "../../packages/partner/src/certify/judge.ts";
import { spawnPaybell } from "../support/instance.ts";
import { broken, byTheLibrary, startEndpoint, type TestEndpoint } from "./endpoints.ts";

const key = () => randomBytes(32).toString("base64");
const keys = { encryptionKey: key(), signingKey: key(), webhookSecret: `whsec_${key()}` };
const env = {
  PAYBELL_ENCRYPTION_KEY: keys.encryptionKey,
  PAYBELL_SIGNING_KEY: keys.signingKey,
  PAYBELL_WEBHOOK_SECRET: keys.webhookSecret,
};

let endpoint: TestEndpoint;
beforeEach(async () => {
  endpoint = await startEndpoint(byTheLibrary(keys));
});
afterEach(() => endpoint.close());

function certify(args: readonly string[], environment: Record<string, string> = env, typed?: string) {
  return paybell(["certify", ...args], environment, typed);
}

/** Runs a command in this process. */
async function paybell(args: readonly string[], environment: Record<string, string> = env, typed?: string) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const stdin = Object.assign(new PassThrough(), { isTTY: typed !== undefined });
  if (typed !== undefined) stdin.end(typed);
  const { signal } = new AbortController();
  const machine = { stdin, stdout, stderr, workingDirectory: import.meta.dirname, fetch, signal, nowMs: Date.now };
  const code = await run(args, { ...machine, env: environment, process });
  stdout.end();
  stderr.end();
  return { code, stdout: await text(stdout), stderr: await text(stderr) };
}

describe("paybell certify", () => {
  it("warns of what it sends, prints a line for each case, and ends with 0", async () => {
    const { code, stdout, stderr } = await certify([`${endpoint.url.host}/ipn`, "--only", "sale,stale-timestamp"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/merchantTransId begins with\s+CERTIFY-[0-9a-f]{8}-, tid is\s+CERTIFY1/);
    expect(stdout).toMatch(/^ok {2}sale {13}204 .* an approved Sale$/m);
    expect(stdout).toMatch(/^ok {2}stale-timestamp {2}400 .* a Sale signed ten minutes ago$/m);
    expect(stdout).toMatch(/\nPASSED: 2 passed, 0 failed, in .* s\n$/);
  });

  it("says of a failure what was sent, expected, came, what it means and how to fix it, and ends with 1", async () => {
    const wrong = await startEndpoint(broken.failsOnDuplicates(keys));
    const { code, stdout } = await certify([wrong.url.href, "--only", "duplicate"]).finally(wrong.close);
    expect(code).toBe(1);
    const labels = [...stdout.matchAll(/^ {2}(\w+) +\S/gm)].map(([, label]) => label);
    const both = ["sent", "expected", "came", "sent", "expected", "came"];
    expect(labels).toEqual(["finding", ...both, "means", "fix", "see"]);
    expect(stdout).toContain("came      500 after ");
  });

  it("shows the signed string of a refused IPN, the first field that differs, and saves the body", async () => {
    const folder = await mkdtemp(join(tmpdir(), "paybell-certify-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const yours = "aid=A0000000031010&amount=1.00&approveCode=000000&isoResponseCode=00";
    const wrong = await startEndpoint(() => (request, response) => {
      request.resume().on("end", () => response.writeHead(400).end(`you signed ${yours}`));
    });
    const args = [wrong.url.href, "--only", "sale,missing-headers", "--save", join(folder, "failed")];
    onTestFinished(wrong.close);
    const { stdout } = await certify(args);
    const asJson = await certify([wrong.url.href, "--only", "sale", "--json"]);
    const [{ exchanges }] = JSON.parse(asJson.stdout).cases;
    expect(exchanges).toMatchObject([
      {
        sent: { signedString: expect.stringMatching(/^aid=A0000000031010&amount=1&.*&batchNo=\d{6}$/) },
        came: { status: 400 },
      },
    ]);
    for (const key of Object.values(env)) expect(asJson.stdout).not.toContain(key);
    expect(stdout).toMatch(/^ {2}signed {4}aid=A0000000031010&amount=1&approveCode=000000&/m);
    expect(stdout).toContain("\n  yours     differs first in field 2: amount=1.00, where amount=1 was signed\n");
    expect(stdout).toContain("\n  see       /docs/partner/headers#why-does-my-signature-not-match, at the service\n");
    expect(await readdir(join(folder, "failed"))).toEqual(["sale-1.json"]);
    const opened = await paybell(["open", join(folder, "failed/sale-1.json"), "--signed-string", yours]);
    expect(opened.code).toBe(0);
    expect(opened.stdout).toContain("First differing field: number 2");
    const { signedString } = JSON.parse(await readFile(join(folder, "failed/sale-1.json"), "utf8"));
    expect(opened.stdout).toContain(signedString);
  });

  describe("an endpoint on another machine", () => {
    // This machine, under another name than localhost.
    const elsewhere = () => [`http://[::ffff:127.0.0.1]:${endpoint.url.port}/ipn`, "--allow-http", "--only", "sale"];

    it.each([
      ["agrees", "y\n", 0, /PASSED/],
      ["agrees in a word", "Yes\n", 0, /PASSED/],
      ["does not", "n\n", 2, /^(?!.*PASSED)/s],
      ["says nothing", "\n", 2, /^(?!.*PASSED)/s],
      ["ends it", "", 2, /^(?!.*PASSED)/s],
    ])("is asked for, and tried where the person at the terminal %s", async (_, typed, expected, said) => {
      const { code, stdout, stderr } = await certify(elsewhere(), env, typed);
      expect(stderr).toMatch(/is another machine, and a case will be sent there\. Go on\? \[y\/N\]/);
      expect([code, stdout]).toEqual([expected, expect.stringMatching(said)]);
      expect(endpoint.taken.length).toBe(expected === 0 ? 1 : 0);
    });

    it("is refused without a terminal, and runs with --yes", async () => {
      const { code, stderr } = await certify([...elsewhere(), "--json"]);
      expect([code, endpoint.taken.length]).toEqual([2, 0]);
      expect(JSON.parse(stderr)).toMatchObject({
        error: { code: "not_confirmed", remedy: expect.stringContaining("--yes") },
      });
      expect((await certify([...elsewhere(), "--yes"])).code).toBe(0);
    });
  });

  it("prints one JSON document for a program, and nothing else", async () => {
    const { code, stdout, stderr } = await certify([endpoint.url.href, "--only", "duplicate", "--json"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(JSON.parse(stdout)).toMatchObject({
      passed: true,
      url: endpoint.url.href,
      counts: { passed: 1, failed: 0, notRun: 0, leftOut: 0 },
      cases: [{ code: "duplicate", verdict: "passed", expected: "2xx", exchanges: [{}, { came: { status: 204 } }] }],
    });
    for (const secret of Object.values(keys)) expect(stdout).not.toContain(secret);
  });

  it("shows an answer's control characters as their codes", async () => {
    const steering = await startEndpoint(() => (request, response) => {
      request.resume().on("end", () => response.writeHead(400).end("\u001b[2Jgone"));
    });
    const { stdout } = await certify([steering.url.href, "--only", "sale"]).finally(steering.close);
    expect(stdout).toContain("\\u{1b}[2Jgone");
    expect(stdout).not.toContain("\u001b");
  });

  it("ends with 1 if nothing listens there", async () => {
    await endpoint.close();
    const { code, stdout } = await certify([endpoint.url.href]);
    expect([code, stdout]).toEqual([1, expect.stringContaining("no connection: connect ECONNREFUSED")]);
    expect(stdout).toMatch(/FAILED: 0 passed, 1 failed, 40 not run/);
  });

  it.each<[string, readonly string[], Record<string, string>, RegExp]>([
    ["a case that there is none of", ["http://localhost/", "--only", "sale,sail"], env, /no case sail\..*duplicate/s],
    ["no URL", ["ftp://localhost/ipn"], env, /"ftp:\/\/localhost\/ipn" is not the URL of an endpoint/],
    ["http:// to another machine", ["shop.example/ipn"], env, /shop\.example is another machine/],
    ["no keys", ["http://localhost/"], {}, /there is no PAYBELL_ENCRYPTION_KEY/],
    ["a key that is none", ["http://localhost/"], { ...env, PAYBELL_SIGNING_KEY: "abc" }, /signingKey has 2 bytes/],
    [
      "a certificate that is not there",
      ["http://localhost/", "--ca", "none.pem"],
      env,
      /none\.pem cannot be read: there is no such file/,
    ],
  ])("ends with 2 for %s, and says what to do", async (_what, args, environment, words) => {
    const { code, stdout, stderr } = await certify(args, environment);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(words);
    expect(stderr).not.toMatch(/\n +at /);
  });

  it("ends at Ctrl-C, with 130, while it waits for an answer", async () => {
    const asked = Promise.withResolvers<void>();
    const silent = await startEndpoint(() => () => asked.resolve());
    const child = spawnPaybell(["certify", silent.url.href], env);
    await asked.promise;
    child.signal("SIGINT");
    expect(await child.exited).toBe(130);
    expect(child.output()).not.toMatch(/error/i);
    await silent.close();
  });
});

describe("its page", () => {
  it("shows the report of an endpoint that stores an IPN twice", async () => {
    const shown = /```text\n(FAIL .*?)\n```/s.exec(await page)?.[1] ?? "";
    const [first = "", second = ""] = [...shown.matchAll(/came {6}\d+ after \d+ ms: (.*)/g)].map(([, body]) => body);
    const answers = [
      [200, first],
      [500, second],
    ] as const;
    let posts = 0;
    const wrong = await startEndpoint(() => (request, response) => {
      const [status, body] = answers[posts] ?? [500, ""];
      posts += 1;
      request.resume().on("end", () => response.writeHead(status).end(body));
    });
    const { stdout } = await certify([wrong.url.href, "--only", "duplicate"]).finally(wrong.close);
    const comparable = (text: string) => text.replaceAll(/\d+ (ms|bytes)/g, "<n> $1");
    expect(comparable(stdout)).toContain(comparable(shown));
  });

  const page = readFile(join(import.meta.dirname, "../../docs/partner/certify.md"), "utf8");
  it("says how many cases there are", async () => {
    expect(await page).toContain(`${caseCodes.length} cases`);
  });

  it("shows the report of an endpoint that answers with the string that it signed", async () => {
    const [, body = ""] = /```text\n {2}came {6}400 after \d+ ms: (.*)\n/.exec(await page) ?? [];
    const wrong = await startEndpoint(() => (request, response) => {
      request.resume().on("end", () => response.writeHead(400).end(body));
    });
    const { stdout } = await certify([wrong.url.href, "--only", "sale"]).finally(wrong.close);
    const [, signed = "", yours = ""] = /\n( {2}signed .*)CERTIFY-…\n( {2}yours .*)\n```/.exec(await page) ?? [];
    expect(signed).not.toBe("");
    expect(stdout).toContain(`\n${signed}`);
    expect(stdout).toContain(`\n${yours}\n`);
  });

  it("has a section of the guides for every finding and every case", async () => {
    const own = cases.flatMap(({ words = {} }) => Object.values(words).map(({ documentation }) => documentation));
    const links = [...Object.values(findings).map(({ documentation }) => documentation), ...own];
    for (const link of new Set(links.filter((one) => one !== undefined))) {
      const [path = "", anchor] = link.split("#");
      const text = await readFile(join(import.meta.dirname, "../..", `${path}.md`), "utf8");
      const anchors = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => {
        return heading
          .toLowerCase()
          .replaceAll(/[^a-z0-9 -]/g, "")
          .replaceAll(" ", "-");
      });
      if (anchor !== undefined) expect(anchors, link).toContain(anchor);
    }
  });
});
