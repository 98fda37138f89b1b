import { expect, test } from "vitest";
import { readConfig } from "../../config/config.ts";
import { isAlerting } from "./alerts.ts";

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
