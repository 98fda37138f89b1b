import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { reportedSale, sale } from "./support/commands.ts";
import { dumpRows } from "./support/rows.ts";
import { callHttp, operatorToken, serviceOfFile } from "./support/service.ts";

const cardNumbers = ["4111111111111111", "5555 5555 5555 4444", "3782-822463-10005", "6011111111111117"];
const cardTokens = { approved: "tok_slow_7", declined: "tok_decline_54", unknown: "tok_sesame_open_9" };
const wrongKey = "pb_wrongwrongwrongwrongwrongwrongwrongwrongwro";

const service = await serviceOfFile();
const partner = await service.register({ retry: [1] });

test("no answer, no log line and no row shows a key, a card's token or a full card number", async () => {
  const shown: string[] = [];
  const show = ({ text }: { readonly text: string }) => void shown.push(text);
  const { approved, declined, unknown } = cardTokens;

  // A secret may be anywhere in the caller's input.
  for (const number of cardNumbers) {
    show(await partner.run(sale({ billId: number })));
    show(await partner.run(sale({ extraData: JSON.stringify({ deep: [{ pan: number }] }) })));
    show(await partner.run(sale({ card: { number, holder: number } })));
    show(await partner.run({ ...sale(), [number]: number }));
    show(await partner.run(sale({ reqId: number })));
    const completions = [
      reportedSale(partner.id, { cardNumber: number, merchantName: number, externalId: "x" }),
      reportedSale(partner.id, { command: number, externalId: "y" }),
    ];
    show(await service.operator("POST", "/operator/v1/completions", { completions }));
    // The audit has what an action asked for before it is refused.
    const callBackUrl = `${partner.server.url}?card=${encodeURIComponent(number)}`;
    show(await partner.call("PUT", "/v1/callback-url", { json: { callBackUrl } }));
    show(await partner.call("POST", `/v1/notifications/${encodeURIComponent(number)}/redeliver`));
    const retry = `/operator/v1/reversals/${randomUUID()}/retry`;
    show(await service.operator("POST", retry, { reason: `card ${number} twice` }));
    const body = `{"command": "SALE", "billId": "${number}`;
    show(await partner.call("POST", "/v1/commands", { body, headers: { "content-type": "application/json" } }));
    const twice = `{"${number}": "${number}", "${number}": ""}`;
    show(await partner.call("POST", "/v1/commands", { body: twice, headers: { "content-type": "application/json" } }));
  }
  show(await partner.run(sale({ card: { token: unknown } })));
  show(await callHttp(service.baseUrl, "POST", "/v1/commands", { key: wrongKey, json: sale() }));
  show(await callHttp(service.baseUrl, "GET", `/v1/self?key=${partner.secrets.apiKey}`, { key: wrongKey }));

  // Successful work leaves traces, too: results, attempts, answers of the partner's server, parked ones.
  partner.server.answers({ status: 500, body: "no" });
  show(await partner.run(sale({ card: { token: declined } })));
  const { id, body, text } = await partner.notify(sale({ card: { token: approved } }), "accepted");
  show({ text });
  show(await partner.call("GET", `/v1/notifications/${id}`));
  show(await partner.call("GET", "/v1/notifications"));
  show(await partner.call("GET", "/v1/self"));
  show(await service.operator("GET", "/operator/v1/partners"));
  show(await service.operator("GET", `/operator/v1/notifications?q=${id}`));
  show(await callHttp(service.baseUrl, "GET", "/metrics", {}));
  const rotate = { key: "signingKey", overlapHours: 1 };
  const rotated = await service.operator("POST", `/operator/v1/partners/${partner.id}/keys/rotate`, rotate);
  expect(rotated.status, rotated.text).toBe(200);

  const rows = await dumpRows(service.database);
  const log = service.logged();
  expect(rows).toContain(String(body["id"]));
  expect(log).toContain("/v1/commands");
  const keys = [...Object.values(partner.secrets), String(rotated.body["secret"]), operatorToken, wrongKey];
  const secrets = [...keys, ...Object.values(cardTokens), ...cardNumbers];
  for (const secret of secrets.flatMap(formsOf)) {
    for (const [where, haystack] of Object.entries({ answers: shown.join("\n"), log, rows })) {
      // A leaked secret must not be printed either.
      expect(haystack.includes(secret), `${where} show a secret of ${secret.length} characters`).toBe(false);
    }
  }
});

/** As it is, without its separators, and its bytes in hexadecimal: keys in base64 may be stored as bytes. */
function formsOf(secret: string): string[] {
  const bare = secret.replace(/^(whsec_|pb_)/, "");
  const bytes = Buffer.from(bare, "base64");
  return [
    secret,
    secret.replaceAll(/[ -]/g, ""),
    Buffer.from(secret).toString("hex"),
    ...(bytes.length === 32 ? [bytes.toString("hex")] : []),
  ];
}
