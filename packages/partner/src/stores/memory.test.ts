import { describe, expect, it } from "vitest";
import { deduplicate } from "../receiver/deduplicate.ts";
import { sampleIpn } from "../testing.ts";
import { storeConformance } from "./conformance.ts";
import { memoryStore } from "./memory.ts";
import type { SeenStore } from "./store.ts";

describe("in memory", () => {
  const store: SeenStore<undefined> = memoryStore();
  storeConformance({ open: () => store });

  it("forgets the oldest beyond its limit, and keeps the others", async () => {
    const once = deduplicate(memoryStore(2))(() => undefined);
    const [first, second, third] = [sampleIpn(), sampleIpn(), sampleIpn()].map(({ received }) => received);
    if (!first || !second || !third) throw new Error("three samples were made");
    for (const received of [first, second, third]) expect(await once(received)).toBe("processed");
    expect(await once(third)).toBe("duplicate");
    expect(await once(second)).toBe("duplicate");
    expect(await once(first)).toBe("processed");
  });
});

it("refuses an IPN without an id, because every other one without would be its duplicate", async () => {
  const { received } = sampleIpn({ ipn: { id: "" } });
  const once = deduplicate(memoryStore())(() => undefined);
  await expect(once(received)).rejects.toThrow("has no id");
});
