import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { headerNames, webhookKey, webhookSignatureMatches } from "@paybell/contract";
import { SMTPServer } from "smtp-server";
import { expect, onTestFinished, test } from "vitest";
import { sale } from "./support/commands.ts";
import { createDatabase, queryHomes, withAdmin } from "./support/database.ts";
import { startPartnerServer } from "./support/receiver.ts";
import { eventually, startTestService } from "./support/service.ts";

const contactMails = ["ops@shop.example", "night@shop.example"];

async function mailServer() {
  const mails: { to: readonly string[]; text: string }[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS"],
    closeTimeout: 10,
    onData(stream, { envelope }, done) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        const text = Buffer.concat(chunks).toString().replaceAll(/\r\n /g, " ").replaceAll("=\r\n", "");
        mails.push({ to: envelope.rcptTo.map(({ address }) => address), text });
        done();
      });
    },
  });
  server.on("error", () => undefined);
  const listening = server.listen(0, "127.0.0.1");
  await once(listening, "listening");
  onTestFinished(() => new Promise((resolve) => server.close(resolve)));
  const env = {
    PAYBELL_ALERT_MAIL_URL: `smtp://127.0.0.1:${(listening.address() as AddressInfo).port}`,
    PAYBELL_ALERT_MAIL_FROM: "paybell@pay.example",
    PAYBELL_ALERT_MAIL_TO: "operator@pay.example",
  };
  return { env, mails: () => mails.filter(({ to }) => to.includes("ops@shop.example")) };
}

test("a partner is told once by mail and once by webhook of trouble, of parking, and of its end", async () => {
  const [{ env, mails }, contact, database] = [await mailServer(), await startPartnerServer(), await createDatabase()];
  onTestFinished(() => contact.close());
  const [masterKey, services] = [randomBytes(32), [] as Awaited<ReturnType<typeof startTestService>>[]];
  for (let count = 0; count < 2; count += 1) services.push(await startTestService({ database, env, masterKey }));
  onTestFinished(async () => {
    await Promise.all(services.map((service) => service.stop()));
    await database.drop();
  });
  const [service] = services as [(typeof services)[number]];
  const contactUrl = contact.url.replace("/ipn", "/contact");
  const partner = await service.register({ name: "Corner Shop", retry: [3_600, 7_200], contactMails, contactUrl });
  partner.server.answersAlways(400);
  const command = sale();
  const { id } = (await partner.run(command)).body["notification"] as { id: string };
  await partner.server.next(1);

  const told = (count: number) =>
    eventually(`${count} messages on both channels`, async () =>
      mails().length >= count && contact.deliveries.length >= count ? true : undefined,
    );
  const tried = () => queryHomes(database, "SELECT FROM attempts WHERE id = $1", [id]);
  await eventually("the attempt", async () => (await tried()).length > 0 || undefined);
  await queryHomes(database, "UPDATE attempts SET started_at = now() - interval '10 min' WHERE id = $1", [id]);
  await told(1);
  const earlier = "UPDATE pending SET schedule_start = now() - interval '150 min' WHERE id = $1";
  await queryHomes(database, earlier, [id]);
  await told(2);
  partner.server.answersAlways(204);
  await partner.call("POST", "/v1/redeliveries", { json: { filter: { state: "pending" } } });
  await told(3);
  await eventually("the end of the trouble", async () => {
    const { rows } = await withAdmin(database.url, (client) => client.query("SELECT FROM partner_messages"));
    return rows.length === 0 || undefined;
  });

  expect(contact.deliveries.map(({ path, body }) => ({ path, ...JSON.parse(body.toString()) }))).toMatchObject([
    { path: "/contact", kind: "failing", partnerId: partner.id, notificationId: id, httpStatus: 400, waiting: 1 },
    { path: "/contact", kind: "parking", partnerId: partner.id, notificationId: id },
    { path: "/contact", kind: "recovered", partnerId: partner.id },
  ]);
  const key = webhookKey(partner.secrets.webhookSecret);
  for (const { headers, body } of contact.deliveries) {
    const [signature, messageId, timestamp] = [headerNames.signature, headerNames.id, headerNames.timestamp].map(
      (name) => String(headers[name]),
    ) as [string, string, string];
    expect(webhookSignatureMatches(signature, messageId, timestamp, body, [key])).toBe(true);
    expect(JSON.parse(body.toString())).toMatchObject({ id: messageId });
  }
  expect(mails().map(({ to, text }) => [to, /^Subject: (.*)\r$/m.exec(text)?.[1]])).toEqual([
    [contactMails, "[Paybell] Corner Shop: notifications are not received"],
    [contactMails, "[Paybell] Corner Shop: notifications are parked soon"],
    [contactMails, "[Paybell] Corner Shop: notifications are received again"],
  ]);
  const written = [...mails().map(({ text }) => text), ...contact.deliveries.map(({ body }) => body.toString())].join();
  for (const secret of [...Object.values(partner.secrets), String(command["merchantTransId"])]) {
    expect(written).not.toContain(secret);
  }
});

test("addresses are refused while the service has no mail server, and a URL where no callback may be", async () => {
  const service = await startTestService();
  onTestFinished(() => service.stop());
  const partner = await service.register();
  const change = (json: unknown) => service.operator("PATCH", `/operator/v1/partners/${partner.id}`, json);
  const refused = await change({ contactMails });
  expect(refused.status).toBe(400);
  expect(refused.text).toContain("PAYBELL_ALERT_MAIL_URL and PAYBELL_ALERT_MAIL_FROM are not set");
  expect((await change({ contactUrl: "https://198.51.100.7/contact" })).text).toContain("address_not_whitelisted");
  expect((await change({ contactMails: [], contactUrl: "https://127.0.0.1/contact" })).status).toBe(200);
});
