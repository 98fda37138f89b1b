import { expect, test } from "vitest";
import { sale } from "./support/commands.ts";
import { eventually, serviceOfFile } from "./support/service.ts";

const service = await serviceOfFile();

test("a partner sees what it has not received and how far it has pulled, and sends its parked ones again", async () => {
  const shop = await service.register({ retry: [1] });
  shop.server.answersAlways(500);
  const { id } = await shop.notify(sale(), "parked");
  const backlog = async () => (await shop.call("GET", "/v1/backlog")).body;
  expect(await backlog()).toEqual({
    trouble: null,
    pending: 0,
    oldestPendingAt: null,
    parked: 1,
    parkedBecause: expect.objectContaining({ parked: 1, reason: "status", httpStatus: 500 }),
    pull: null,
  });
  const first = await eventually("it to be settled", async () => {
    const page = await shop.call("GET", "/v1/notifications?limit=1");
    return (page.body["items"] as unknown[]).length === 1 ? page.body : undefined;
  });
  const next = await shop.call("GET", `/v1/notifications?after=${String(first["next"])}`);
  expect(next.body).toMatchObject({ items: [] });
  expect(await backlog()).toMatchObject({ pull: { left: 0, problem: null, upTo: expect.any(String) } });
  shop.server.answersAlways(204);
  const again = (json: object) => shop.call("POST", "/v1/redeliveries", { json: { filter: {}, ...json } });
  expect(await again({ dryRun: true })).toMatchObject({ status: 200, body: { matched: 1, redelivered: 0 } });
  expect(await again({ filter: { partner: shop.id } })).toMatchObject({ status: 400 });
  expect(await again({})).toMatchObject({ body: { matched: 1, redelivered: 1 } });
  await shop.settled(id, "accepted");
  expect(await backlog()).toMatchObject({ pending: 0, parked: 0, parkedBecause: null });
});
