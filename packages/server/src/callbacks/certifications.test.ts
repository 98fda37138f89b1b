import { expect, test } from "vitest";
import { systemClock } from "../clock.ts";
import { partnerSnapshot } from "../partners/partner.fixture.ts";
import { Certifications } from "./certifications.ts";

test("one run at a time certifies a partner's endpoint, and another may follow one that failed", async () => {
  const spending = Promise.withResolvers<void>();
  const certifications = new Certifications({
    connect: () => Promise.reject(new Error("nothing may be sent")),
    seals: { spend: () => spending.promise },
    rules: { sandbox: false },
    clock: systemClock,
  });
  const partner = partnerSnapshot({ callBackUrl: "https://callback.test/ipn" });
  const run = () => certifications.run(partner, undefined, new AbortController().signal);
  const first = run();
  await expect(run()).rejects.toMatchObject({ code: "too_many_requests" });
  spending.reject(new Error("the key is exhausted"));
  await expect(first).rejects.toThrow("the key is exhausted");
  await expect(run()).rejects.toThrow("the key is exhausted");
});
