import { expect, onTestFinished, test } from "vitest";
import { reportedSale, sale } from "./support/commands.ts";
import { operatorToken, startTestService } from "./support/service.ts";

test("the audit has each look at the content of IPNs: one's content, its proof, and a day", async () => {
  const service = await startTestService();
  onTestFinished(() => service.stop());
  const partner = await service.register();
  const { body } = await partner.run(sale());
  const { id } = body["notification"] as { id: string };
  await partner.settled(id, "accepted");
  const looks = [
    [`/operator/v1/notifications/${id}/content`, "readNotification", id],
    [`/operator/v1/notifications/${id}/proof`, "proveDelivery", id],
    ["/operator/v1/history/2026-01-31", "exportHistory", "2026-01-31"],
  ] as const;
  for (const [path, action, subject] of looks) {
    const answer = await fetch(`${service.baseUrl}${path}`, { headers: { authorization: `Bearer ${operatorToken}` } });
    await answer.arrayBuffer();
    expect(answer.status, path).toBe(200);
    const { body: audit } = await service.operator("GET", "/operator/v1/audit?limit=1");
    expect(audit["items"], path).toMatchObject([{ action, subject, actor: "bootstrap", address: "127.0.0.1" }]);
  }
});

test("a refused report is shown by its event's id to operators only, and the audit has each look", async () => {
  const service = await startTestService();
  onTestFinished(() => service.stop());
  const partner = await service.register();
  const refused = { ...reportedSale(partner.id, { amount: "-1", merchantTransId: "bought-shoes" }) };
  await service.operator("POST", "/operator/v1/completions", { completions: [refused] });
  const tokens = await Promise.all(
    ["viewer", "operator"].map(async (role) => {
      const { body } = await service.operator("POST", "/operator/v1/operators", { name: `A ${role}`, role });
      return String(body["token"]);
    }),
  );
  const [viewer = "", operator = ""] = tokens;
  const get = (path: string, token: string) => service.operator("GET", `/operator/v1/${path}`, undefined, token);
  for (const token of tokens) {
    const { status, text } = await get("events?state=report_refused", token);
    expect(status).toBe(200);
    expect(text).toContain("invalid_amount");
    expect(text).not.toContain("bought-shoes");
  }
  const { body: page } = await get("events?state=report_refused", viewer);
  const [{ id } = { id: "" }] = page["items"] as { id: string }[];
  expect((await get(`events/${id}`, viewer)).text).not.toContain("bought-shoes");
  expect((await get(`events/${id}`, operator)).body).toMatchObject({ detail: { item: refused } });
  const { body: audit } = await service.operator("GET", "/operator/v1/audit?action=inspectEvent&limit=1");
  expect(audit["items"]).toMatchObject([{ actor: "A operator", role: "operator", subject: id }]);
});
