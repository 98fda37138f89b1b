import { expect, onTestFinished, test } from "vitest";
import { sale } from "./support/commands.ts";
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
