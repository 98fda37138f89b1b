import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { CommandLine } from "./command-line.ts";

const line = new CommandLine({ PAYBELL_URL: "http://127.0.0.1:9", PAYBELL_OPERATOR_TOKEN: "pbo_token" });
afterAll(() => line.remove());
const pathOf = (name: string) => join(line.folder, name);

const rotate = ["partner", "rotate", "apiKey", "--partner", "01a1fc39-e58e-73fb-a49a-dce132454876", "--out"];
const history = ["history", "export", "--day", "2026-11-21", "--out"];
const answer = (body: object) => new Response(JSON.stringify(body));

/** A service that does not answer until the call is aborted. */
function silentService() {
  const asked = Promise.withResolvers<void>();
  const answerTo: typeof fetch = (_, init) => {
    asked.resolve();
    return new Promise((_, reject) => init?.signal?.addEventListener("abort", () => reject(new Error("aborted"))));
  };
  return { asked: asked.promise, fetch: answerTo };
}

/** A body of which one line comes. */
const firstLine = (then: (body: ReadableStreamDefaultController) => void) =>
  new ReadableStream({
    start(body) {
      body.enqueue(Buffer.from("one\n"));
      setTimeout(then, 50, body);
    },
  });

test("a token that no header can hold is refused without being shown", async () => {
  const token = "pbo_first\nsecond";
  const { code, stderr } = await line.run(["partner", "list"], { env: { PAYBELL_OPERATOR_TOKEN: token } });
  expect(code).toBe(2);
  expect(stderr).toContain("the operator token in PAYBELL_OPERATOR_TOKEN has a line break");
  expect(stderr).not.toMatch(/first|second/);
});

test("the file of a new secret has its space on disk before the secret is made", async () => {
  let reserved = 0;
  const secret = { id: "k", kind: "apiKey", secret: "pb_new", activeFrom: "now", expiresOld: "then" };
  const written = { apiKey: "pb_new", activeFrom: "now", expiresOld: "then" };
  const fetch = async () => {
    reserved = statSync(pathOf("new.json")).size;
    return answer(secret);
  };
  const rotating = line.start([...rotate, "new.json"], { fetch });
  expect((await rotating.ended).code).toBe(0);
  // Too late: the file has what is nowhere else.
  rotating.interrupt();
  expect(reserved).toBeGreaterThan(JSON.stringify(secret).length);
  expect(readFileSync(pathOf("new.json"), "utf8")).toBe(`${JSON.stringify(written, null, 2)}\n`);
});

test("a command that is interrupted leaves no file that it did not complete", async () => {
  const { asked, fetch } = silentService();
  const rotating = line.start([...rotate, "never.json"], { fetch });
  await asked;
  rotating.interrupt();
  expect((await rotating.ended).code).toBe(130);
  expect(existsSync(pathOf("never.json"))).toBe(false);

  const answered = Promise.withResolvers<void>();
  const half: typeof fetch = async (_, init) => {
    const aborted = new Promise((resolve) => init?.signal?.addEventListener("abort", resolve));
    answered.resolve();
    return new Response(firstLine((body) => void aborted.then(() => body.error(new Error("aborted")))));
  };
  const exporting = line.start([...history, "half.jsonl"], { fetch: half });
  await answered.promise;
  expect(existsSync(pathOf("half.jsonl.partial"))).toBe(true);
  exporting.interrupt();
  expect((await exporting.ended).code).toBe(130);
  expect(existsSync(pathOf("half.jsonl.partial"))).toBe(false);
});

test("an answer that is cut is a failure of the service", async () => {
  const fetch = async () => new Response(firstLine((body) => body.error(new TypeError("terminated"))));
  const { code, stderr } = await line.run([...history, "cut.jsonl"], { fetch });
  expect([code, stderr]).toEqual([3, expect.stringContaining("http://127.0.0.1:9 ended its answer early")]);
  expect(existsSync(pathOf("cut.jsonl"))).toBe(false);
});

test.each([["top"], ["event", "list", "--follow"]])(
  "Ctrl-C is how %s ends, also while it waits for an answer",
  async (...args) => {
    const { asked, fetch } = silentService();
    const top = line.start(args, { fetch, isTerminal: true });
    await asked;
    top.interrupt();
    expect(await top.ended).toMatchObject({ code: 0, stderr: "" });
  },
);

test("a signal to the process that was started reaches the command", async () => {
  const service = createServer();
  await once(service.listen(0, "127.0.0.1"), "listening");
  onTestFinished(async () => {
    service.closeAllConnections();
    await once(service.close(), "close");
  });
  const { port } = service.address() as AddressInfo;
  const env = { ...process.env, PAYBELL_URL: `http://127.0.0.1:${port}`, PAYBELL_OPERATOR_TOKEN: "pbo_token" };
  const bin = join(import.meta.dirname, "../../packages/cli/bin/paybell.js");
  const started = spawn(process.execPath, [bin, "partner", "list"], { env, stdio: "ignore" });
  await once(service, "request");
  started.kill("SIGINT");
  expect(await once(started, "exit")).toEqual([130, null]);
});

test("output that does not reach its file whole is a failure, and a file of --out is not begun for good", async () => {
  const service = createServer(({ url = "", headers: { accept = "" } }, response) => {
    const text = `${"x".repeat(99_999)}\n`;
    const isJson = url.startsWith("/v1/statements") && !accept.includes("csv");
    response.end(isJson ? JSON.stringify({ lines: [], totals: [], isComplete: true, text }) : text);
  });
  await once(service.listen(0, "127.0.0.1"), "listening");
  onTestFinished(async () => void (await once(service.close(), "close")));
  const env = {
    PATH: process.env["PATH"],
    PAYBELL_URL: `http://127.0.0.1:${(service.address() as AddressInfo).port}`,
    PAYBELL_OPERATOR_TOKEN: "pbo_token",
    PAYBELL_API_KEY: "pb_key",
  };
  /** With files of at most a few kilobytes, as on a disk that gets full in the middle of a write. */
  async function run(args: readonly string[]) {
    const bin = join(import.meta.dirname, "../../packages/cli/bin/paybell.js");
    const limited = 'ulimit -f 8; exec "$@" > output';
    const words = ["-c", limited, "sh", process.execPath, "--conditions=paybell-source", bin, ...args];
    const started = spawn("sh", words, { env, cwd: line.folder, stdio: ["ignore", "inherit", "pipe"] });
    let stderr = "";
    started.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    const [code] = await once(started, "close");
    return [code, stderr];
  }
  const day = ["statement", "day", "2026-11-21"];
  for (const form of ["--csv", "--json"])
    expect(await run([...day, form])).toEqual([4, expect.stringContaining("the output cannot be written: EFBIG.")]);
  const [code, stderr] = await run([...history, "large.jsonl"]);
  expect([code, stderr]).toEqual([2, expect.stringContaining("paybell: large.jsonl cannot be written: EFBIG.")]);
  expect(existsSync(pathOf("large.jsonl.partial"))).toBe(false);
});
