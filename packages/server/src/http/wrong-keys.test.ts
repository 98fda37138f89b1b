import { expect, test } from "vitest";
import { createLog } from "../log.ts";
import { WrongKeys } from "./wrong-keys.ts";

function codeOf(refusing: () => never): unknown {
  try {
    return refusing();
  } catch (error) {
    return (error as { code?: unknown }).code;
  }
}

test("wrong keys are counted for a network of IPv6 addresses, of which one caller has as many as it wants", () => {
  const wrongKeys = new WrongKeys({
    log: createLog("error", { write: () => undefined }),
    metrics: { callersRefused: { inc: () => undefined } } as never,
    clock: { nowMs: () => 0, monotonicMs: () => 0 },
  });
  const codes = Array.from({ length: 101 }, (_, nth) =>
    codeOf(() => wrongKeys.refuse(`2001:db8:1:2::${nth.toString(16)}`)),
  );
  expect([codes[0], codes[99], codes[100]]).toEqual(["unauthorized", "unauthorized", "too_many_requests"]);
  expect(codeOf(() => wrongKeys.refuse("2001:db8:1:3::1"))).toBe("unauthorized");
});
