import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { webhookKey, webhookSignatureMatches } from "@paybell/contract";
import { SMTPServer } from "smtp-server";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { CommandLine } from "./command-line.ts";

const secret = `whsec_${Buffer.alloc(32, 5).toString("base64")}`;

interface Taken {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

let taken: Taken[];
let mails: string[];
/** The answer of the chat; the webhook is always answered 204. */
let chatStatus: number;
beforeEach(() => {
  [taken, mails, chatStatus] = [[], [], 200];
});

async function startChannels(): Promise<Record<string, string>> {
  const http = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const path = request.url ?? "";
    taken.push({ path, headers: request.headers, body: Buffer.concat(chunks).toString() });
    response.writeHead(path === "/chat" ? chatStatus : 204).end();
  });
  await once(http.listen(0, "127.0.0.1"), "listening");
  onTestFinished(async () => {
    http.closeAllConnections();
    await once(http.close(), "close");
  });
  const smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS"],
    onData(stream, _, done) {
      let text = "";
      stream.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      stream.on("end", () => {
        mails.push(text);
        done();
      });
    },
  });
  const mailServer = smtp.listen(0, "127.0.0.1");
  await once(mailServer, "listening");
  onTestFinished(() => new Promise((resolve) => smtp.close(resolve)));
  const port = (server: { address(): unknown }) => (server.address() as AddressInfo).port;
  return {
    PAYBELL_ALERT_URL: `http://127.0.0.1:${port(http)}/alerts`,
    PAYBELL_ALERT_SECRET: secret,
    PAYBELL_ALERT_ADDRESSES: "127.0.0.1/32",
    PAYBELL_ALERT_SLACK_URL: `http://127.0.0.1:${port(http)}/chat`,
    PAYBELL_ALERT_MAIL_URL: `smtp://127.0.0.1:${port(mailServer)}`,
    PAYBELL_ALERT_MAIL_FROM: "paybell@shop.example",
    PAYBELL_ALERT_MAIL_TO: "ops@shop.example",
  };
}

async function alertsTest(env: Readonly<Record<string, string>>) {
  const line = new CommandLine();
  onTestFinished(() => line.remove());
  const { code, stdout, stderr } = await line.run(["alerts", "test"], { env });
  return { code, output: stdout + stderr };
}

test("each channel gets the test: the webhook signed, the chat as text, the mail with a subject", async () => {
  const { code, output } = await alertsTest(await startChannels());
  expect(code, output).toBe(0);
  expect(
    output
      .trim()
      .split("\n")
      .map((line) => line.split(/\s+/)[0]),
  ).toEqual(["ok", "ok", "ok"]);
  const webhook = taken.find(({ path }) => path === "/alerts");
  const { headers, body } = webhook as Taken;
  const [id, timestamp, signature] = ["id", "timestamp", "signature"].map((name) => String(headers[`webhook-${name}`]));
  expect(webhookSignatureMatches(signature ?? "", id ?? "", timestamp ?? "", body, [webhookKey(secret)])).toBe(true);
  expect(JSON.parse(body)).toMatchObject({ id, kind: "alert_test", count: 1 });
  const chat = taken.find(({ path }) => path === "/chat");
  expect(JSON.parse(chat?.body ?? "").text).toContain("A test: alerts arrive here");
  expect(mails).toEqual([expect.stringMatching(/^Subject: .*A test: alerts arrive here/m)]);
});

test("a channel that does not take it is named with the reason, and the others get it", async () => {
  const env = await startChannels();
  chatStatus = 403;
  const { code, output } = await alertsTest(env);
  expect(code).toBe(1);
  const lines = output.trim().split("\n");
  expect(lines.filter((line) => line.startsWith("ok"))).toHaveLength(2);
  expect(lines.filter((line) => line.startsWith("ERROR"))).toEqual([expect.stringMatching(/slack.*403/)]);
  expect(mails).toHaveLength(1);
});

test("without a channel it says so, and fails", async () => {
  const { code, output } = await alertsTest({});
  expect(code).toBe(1);
  expect(output).toContain("no PAYBELL_ALERT_ setting names a target");
});
