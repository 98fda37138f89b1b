import { afterAll, beforeAll, expect, test } from "vitest";
import { HttpTestService, operatorToken } from "../service.fixture.ts";

let service: HttpTestService;
beforeAll(async () => {
  service = await new HttpTestService().listen();
});
afterAll(() => service.close());

const get = async (path: string) => (await service.call("GET", path, { key: operatorToken })).body;

test("acquirers are listed with their links, beside the one of the settings", async () => {
  const beganMs = Date.now();
  const { ofSettings, items } = (await get("/operator/v1/acquirers")) as {
    ofSettings: unknown;
    items: { name: string; link: { ok: boolean; heardAt: string } }[];
  };
  expect(ofSettings).toEqual({ kind: "simulator", link: { ok: true, detail: "has no link", heardAt: null } });
  expect(items).toMatchObject([{ name: "first", link: { ok: true } }]);
  const heardMs = Date.parse(items[0]?.link.heardAt ?? "");
  expect(heardMs).toBeGreaterThanOrEqual(beganMs - 3_000);
  expect(heardMs).toBeLessThanOrEqual(Date.now() - 3_000);
});

test("an acquirer's terminals are cut off where they are too many for one answer", async () => {
  expect(await get("/operator/v1/acquirers/first/terminals")).toMatchObject({ isCut: false, items: [{ tid: "T1" }] });
  const cut = await get("/operator/v1/acquirers/large/terminals");
  expect(cut["isCut"]).toBe(true);
  expect(cut["items"]).toHaveLength(500);
});
