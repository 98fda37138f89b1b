import { expect, test } from "vitest";
import { lowestId } from "../packages/server/src/ids.ts";
import { sale } from "./support/commands.ts";
import { inHomes } from "./support/database.ts";
import { serviceOfFile, type TestPartner } from "./support/service.ts";

const service = await serviceOfFile();

/** An accepted Sale of a new partner. */
async function accepted(): Promise<{ readonly partner: TestPartner; readonly id: string }> {
  const partner = await service.register();
  const { id } = await partner.notify(sale(), "accepted");
  return { partner, id };
}

const changes = [
  ["its content", `content = replace(content::text, '"fields":{', '"fields":{"amount":"1.00",')::json`],
  ["its original's reqId", `content = replace(content::text, '{"kind"', '{"originalReqId":"r","kind"')::json`],
  ["its URL", "callback_url = 'https://localhost/elsewhere'"],
  ["its original", "original_id = transaction_id"],
  ["its original at the switch", "original_external_id = 'another'"],
  ["its MAC", "content_mac = decode('00', 'hex')"],
] as const;

test.each(changes)(
  "a notification of which somebody changed %s is parked, and nobody else waits",
  async (_, change) => {
    const { partner, id } = await accepted();
    const received = partner.server.deliveries.length;
    await inHomes(service.database, (client) => client.query(`UPDATE notifications SET ${change} WHERE id = $1`, [id]));

    const proof = await service.operator("GET", `/operator/v1/notifications/${id}/proof`);
    expect(proof).toMatchObject({ status: 409, body: { code: "content_changed" } });
    const read = await service.operator("GET", `/operator/v1/notifications/${id}/content`);
    expect(read).toMatchObject({ status: 409, body: { code: "content_changed" } });

    expect((await service.operator("POST", `/operator/v1/notifications/${id}/redeliver`, {})).status).toBe(202);
    expect(await partner.settled(id, "parked")).toMatchObject({ attempts: [{}, { reason: "content_changed" }] });
    expect(partner.server.deliveries).toHaveLength(received);

    const other = await partner.notify(sale(), "accepted");
    await partner.listed(other.id);
    const { body: page } = await partner.call("GET", "/v1/notifications");
    expect((page["items"] as { id: string }[]).map((item) => item.id)).toEqual([other.id]);

    const { body: events } = await service.operator("GET", "/operator/v1/events?state=content_changed");
    expect(events["items"]).toContainEqual(expect.objectContaining({ subjectId: id }));
  },
);

test("a notification that somebody wrote to the database is refused, with an id older than the mark too", async () => {
  const { id } = await accepted();
  const forged = `${lowestId(Date.now() - 86_400_000).slice(0, 14)}${id.slice(14)}`;
  await inHomes(service.database, (client) =>
    client.query(
      `INSERT INTO notifications (partner_id, id, chain_id, command, callback_url, content)
       SELECT partner_id, $2, chain_id, command, callback_url, content FROM notifications WHERE id = $1`,
      [id, forged],
    ),
  );
  const proof = async () => await service.operator("GET", `/operator/v1/notifications/${forged}/proof`);
  await expect.poll(proof).toMatchObject({ status: 409, body: { code: "content_changed" } });
});
