import { expect, test } from "vitest";
import { newId } from "../ids.ts";
import { Endpoints } from "./endpoints.ts";
import type { Attempt } from "./store.ts";

const partnerId = newId<"partner">();
const url = "https://partner.example/left";

const answered410: Attempt = {
  startedAtMs: 1,
  durationMs: 1,
  url,
  address: null,
  httpStatus: 410,
  reason: "gone",
  detail: null,
  answer: null,
  keyId: null,
};

test("whoever saw a 410 sends nothing more to that URL, whether or not the database was asked since", async () => {
  const endpoints = new Endpoints({
    store: { troubled: async () => [] },
    onTrouble: () => undefined,
    onClosed: () => undefined,
  });
  await endpoints.refresh();
  const seen = endpoints.sightings({ partnerId, attempt: answered410, retryAfterMs: null, isProbe: false });
  expect(seen).toMatchObject([{ sign: "gone" }]);
  expect(endpoints.blocked(partnerId, url)).toBe("gone");
  expect(endpoints.blocked(partnerId, "https://partner.example/ipn")).toBeUndefined();
});
