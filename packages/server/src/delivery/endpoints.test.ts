import { expect, test } from "vitest";
import { newId } from "../ids.ts";
import { Endpoints } from "./endpoints.ts";
import type { TroubledEndpoint } from "./endpoints-store.ts";
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

test("what was read before a 410 was recorded does not make it forgotten; what is read after it does", async () => {
  const answers: PromiseWithResolvers<readonly TroubledEndpoint[]>[] = [];
  const endpoints = new Endpoints({
    store: {
      troubled: () => {
        const answer = Promise.withResolvers<readonly TroubledEndpoint[]>();
        answers.push(answer);
        return answer.promise;
      },
    },
    onTrouble: () => undefined,
    onClosed: () => undefined,
  });
  const begun = endpoints.refresh();
  const seen = endpoints.sightings({ partnerId, attempt: answered410, retryAfterMs: null, isProbe: false });
  endpoints.recorded(seen);
  answers[0]?.resolve([]);
  await begun;
  expect(endpoints.blocked(partnerId, url)).toBe("gone");
  // Meanwhile it was closed by hand.
  const next = endpoints.refresh();
  answers[1]?.resolve([]);
  await next;
  expect(endpoints.blocked(partnerId, url)).toBeUndefined();
});
