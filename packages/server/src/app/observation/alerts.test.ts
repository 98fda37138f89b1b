import { createServer } from "node:http";
import { SMTPServer } from "smtp-server";
import { expect, test } from "vitest";
import { listening } from "../../../../../test/support/temporary.ts";
import { readConfig } from "../../config/config.ts";
import { egressProxyOf } from "../egress.ts";
import { isAlerting, mailServerOf, testAlerts } from "./alerts.ts";

const secret = `whsec_${Buffer.alloc(32, 5).toString("base64")}`;

test.each<[string, NodeJS.ProcessEnv]>([
  ["a webhook", { PAYBELL_ALERT_URL: "https://ops.example/alerts", PAYBELL_ALERT_SECRET: secret }],
  ["a chat", { PAYBELL_ALERT_SLACK_URL: "https://chat.example/hook" }],
  [
    "a mail server",
    {
      PAYBELL_ALERT_MAIL_URL: "smtp://mail.example",
      PAYBELL_ALERT_MAIL_FROM: "paybell@shop.example",
      PAYBELL_ALERT_MAIL_TO: "ops@shop.example",
    },
  ],
])("alerts are sent with %s alone", (_, env) => {
  expect(isAlerting(readConfig({}))).toBe(false);
  expect(isAlerting(readConfig(env))).toBe(true);
});

test("an address that the mail server refuses is named, and the others get their mail", async () => {
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS"],
    onRcptTo: ({ address }, _, done) => done(address.startsWith("gone") ? new Error("no such person") : null),
    onData: (stream, _, done) => void stream.resume().on("end", done),
  });
  const port = await listening(server.server);
  const config = readConfig({
    PAYBELL_ALERT_MAIL_URL: `smtp://127.0.0.1:${port}`,
    PAYBELL_ALERT_MAIL_FROM: "paybell@shop.example",
    PAYBELL_ALERT_MAIL_TO: "ada@shop.example, gone@shop.example",
  });
  expect(await testAlerts(config)).toEqual([
    { target: "mail to ada@shop.example", ok: true, problem: "" },
    { target: "mail to gone@shop.example", ok: false, problem: expect.stringContaining("no such person") },
  ]);
});

test.each([
  [undefined, false],
  ["0.0.0.0/0,10.0.0.0/8", false],
  ["127.0.0.1/32", true],
])("a loopback address is called only where one is named: %s", async (addresses, ok) => {
  const port = await listening(createServer((_, response) => response.writeHead(204).end()));
  const env = { PAYBELL_ALERT_SLACK_URL: `http://127.0.0.1:${port}/hook`, PAYBELL_ALERT_ADDRESSES: addresses };
  expect(await testAlerts(readConfig(env))).toMatchObject([{ target: "slack", ok }]);
});

test.each([
  ["other.example", true],
  ["mail.example", false],
])("mails go through the proxy unless their server is excepted: without %s %s", (except, isThrough) => {
  const config = readConfig({
    PAYBELL_ALERT_MAIL_URL: "smtp://mail.example",
    PAYBELL_ALERT_MAIL_FROM: "paybell@shop.example",
    PAYBELL_ALERT_MAIL_TO: "ops@shop.example",
    PAYBELL_EGRESS_PROXY: "http://127.0.0.1:9",
    PAYBELL_EGRESS_PROXY_EXCEPT: except,
  });
  expect(mailServerOf(config, egressProxyOf(config))?.connect !== undefined).toBe(isThrough);
});
