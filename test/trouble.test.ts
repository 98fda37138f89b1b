import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "vitest";
import { reportedSale, sale } from "./support/commands.ts";
import { queryHomes } from "./support/database.ts";
import { eventually, serviceOfFile, type TestPartner } from "./support/service.ts";

const service = await serviceOfFile();

interface Trouble {
  readonly partnerId: string;
  readonly because: string;
  readonly waiting: number;
  readonly [field: string]: unknown;
}

/** As the operator sees it in the overview, and as the partner does in its backlog. */
async function troubleOf(partner: TestPartner): Promise<readonly (Trouble | null)[]> {
  const [overview, backlog] = await Promise.all([
    service.operator("GET", "/operator/v1/overview"),
    partner.call("GET", "/v1/backlog"),
  ]);
  const seen = (overview.body["trouble"] as Trouble[]).find(({ partnerId }) => partnerId === partner.id);
  return [seen ?? null, backlog.body["trouble"] as Trouble | null];
}

function trouble(partner: TestPartner, isIt: (found: Trouble) => boolean): Promise<Trouble> {
  return eventually("the trouble, for both", async () => {
    const [seen, own] = await troubleOf(partner);
    return seen && isIt(seen) && isDeepStrictEqual(own, seen) ? seen : undefined;
  });
}

const noTrouble = (partner: TestPartner) =>
  eventually("no trouble", async () => (await troubleOf(partner)).every((found) => found === null) || undefined);

const run = async (partner: TestPartner) => (await partner.notify(sale())).id;

/** Its times as the API writes them. */
async function timesOf(id: string): Promise<Readonly<Record<"parkingAt" | "nextAttemptAt" | "since", string>>> {
  const ms = (of: string) => `(extract(epoch FROM ${of}) * 1000)::float8`;
  const text = `SELECT ${ms("schedule_start + interval '3 hours'")} AS "parkingAt", ${ms("due_at")} AS "nextAttemptAt",
    (SELECT ${ms("min(started_at)")} FROM attempts a WHERE a.id = p.id) AS since FROM pending p WHERE id = $1`;
  const [row = {}] = await queryHomes(service.database, text, [id]);
  const times = Object.entries(row).map(([name, atMs]) => [name, new Date(Number(atMs)).toISOString()]);
  return Object.fromEntries(times);
}

describe.concurrent("trouble", () => {
  test("is that of a partner whose server refuses, until it has received everything", async () => {
    const [partner, healthy] = [await service.register({ retry: [3_600, 7_200] }), await service.register()];
    partner.server.answersAlways(400);
    const first = await run(partner);
    const of = { notificationId: first, because: "retry", reason: "status", httpStatus: 400 };
    expect(await trouble(partner, () => true)).toMatchObject({ ...of, waiting: 1, ...(await timesOf(first)) });
    await run(partner);
    await healthy.settled(await run(healthy), "accepted");
    const { since, parkingAt } = await timesOf(first);
    expect(await trouble(partner, ({ waiting }) => waiting === 2)).toMatchObject({ ...of, since, parkingAt });
    expect(await troubleOf(healthy)).toEqual([null, null]);

    partner.server.answersAlways(204);
    await partner.call("POST", "/v1/redeliveries", { json: { filter: { state: "pending" } } });
    await noTrouble(partner);
  });

  test("counts what waits untried for a tripped circuit, and names its next probe", async () => {
    const partner = await service.register({ retry: [3_600], ordering: "none" });
    partner.server.answersAlways(503);
    for (let count = 0; count < 5; count += 1) await run(partner);
    await trouble(partner, ({ because }) => because === "circuit");
    await service.report(Array.from({ length: 3 }, () => reportedSale(partner.id)));
    expect(await trouble(partner, ({ waiting }) => waiting === 8)).toMatchObject({ reason: "status", httpStatus: 503 });
  });

  test("is that of what is parked, and both see why, until the partner accepts another or it is sent again", async () => {
    const partner = await service.register({ retry: [1] });
    await partner.settled(await run(partner), "accepted");
    partner.server.answersAlways(401);
    const parked = await run(partner);
    await partner.settled(parked, "parked");
    const own = (await partner.call("GET", "/v1/backlog")).body["parkedBecause"];
    const of = { notificationId: parked, parked: 1, reason: "status", httpStatus: 401 };
    expect(own).toMatchObject({ ...of, acceptedAt: null });
    const all = await eventually("the overview to have it", async () => {
      const { body } = await service.operator("GET", "/operator/v1/overview");
      const found = (body["parked"] as { partnerId: string }[]).filter(({ partnerId }) => partnerId === partner.id);
      return found.length > 0 ? found : undefined;
    });
    expect(all).toEqual([own]);
    // An overview is kept for a second, and may have been read while it was parked.
    await noTrouble(partner);

    // From the next that it accepts on, they wait for a person, and it is in trouble no more.
    partner.server.answersAlways(204);
    await partner.settled(await run(partner), "accepted");
    const task = (await partner.call("GET", "/v1/backlog")).body["parkedBecause"];
    expect(task).toMatchObject({ ...of, acceptedAt: expect.stringMatching(/^20/) });

    await partner.call("POST", "/v1/redeliveries", { json: { filter: { state: "parked" } } });
    await partner.settled(parked, "accepted");
    expect((await partner.call("GET", "/v1/backlog")).body["parkedBecause"]).toBeNull();
  });

  test("of a partner that is not active ends when it is, and nothing of it is parked meanwhile", async () => {
    const partner = await service.register();
    await service.operator("POST", `/operator/v1/partners/${partner.id}/pause`);
    await service.report([reportedSale(partner.id)]);
    const found = await trouble(partner, ({ because }) => because === "paused");
    expect(found).toMatchObject({ waiting: 1, reason: null, nextAttemptAt: null, parkingAt: null });
    expect(Date.parse(String(found["since"]))).toBeLessThanOrEqual(Date.now());
    await service.operator("POST", `/operator/v1/partners/${partner.id}/resume`);
    await noTrouble(partner);
  });
});
