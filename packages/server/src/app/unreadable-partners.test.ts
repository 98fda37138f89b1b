import { expect, test } from "vitest";
import { ServiceError } from "../errors.ts";
import { newId, type PartnerId } from "../ids.ts";
import { UnreadablePartners } from "./unreadable-partners.ts";

function watching() {
  const clock = { nowMs: 0 };
  const told: (readonly [PartnerId, unknown])[] = [];
  const unreadable = new UnreadablePartners(
    (id, error) => told.push([id, error]),
    () => clock.nowMs,
  );
  return { clock, told, watch: unreadable.watch.bind(unreadable) };
}

const broken = new Error("the key cannot be opened");

test("a partner whose keys cannot be read is reported once an hour, however often it is looked up", async () => {
  const { clock, told, watch } = watching();
  const id = newId<"partner">();
  for (let nth = 0; nth < 3; nth += 1) await expect(watch(id, Promise.reject(broken))).rejects.toBe(broken);
  clock.nowMs = 3_599_999;
  await expect(watch(id, Promise.reject(broken))).rejects.toBe(broken);
  expect(told).toEqual([[id, broken]]);
  clock.nowMs = 3_600_000;
  await expect(watch(id, Promise.reject(broken))).rejects.toBe(broken);
  expect(told).toHaveLength(2);
});

test("a partner that was repaired and cannot be read again is reported again", async () => {
  const { told, watch } = watching();
  const id = newId<"partner">();
  await expect(watch(id, Promise.reject(broken))).rejects.toBe(broken);
  await watch(id, Promise.resolve("its snapshot"));
  await expect(watch(id, Promise.reject(broken))).rejects.toBe(broken);
  expect(told).toHaveLength(2);
});

test("other partners are served meanwhile, and each unreadable one is reported separately", async () => {
  const { told, watch } = watching();
  const [good, bad, worse] = [newId<"partner">(), newId<"partner">(), newId<"partner">()];
  const found = await Promise.allSettled([
    watch(bad, Promise.reject(broken)),
    watch(good, Promise.resolve("its snapshot")),
    watch(worse, Promise.reject(broken)),
  ]);
  expect(found).toMatchObject([{ status: "rejected" }, { value: "its snapshot" }, { status: "rejected" }]);
  expect(told.map(([id]) => id)).toEqual([bad, worse]);
});

test("a database outage is not reported as a partner's problem", async () => {
  const { told, watch } = watching();
  const away = new ServiceError("unavailable", undefined, { retryAfterS: 2 });
  await expect(watch(newId<"partner">(), Promise.reject(away))).rejects.toBe(away);
  expect(told).toEqual([]);
});
