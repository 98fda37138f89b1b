import { expect, test } from "vitest";
import { fuzz } from "./fuzz.ts";
import { fuzzRoutes } from "./routes.ts";
import { targets } from "./targets.ts";

const short = { seed: 20_260_131, casesMax: 4_000, durationMs: 1_500 };

test.each(targets.map((target) => [target.name, target] as const))(
  "%s survive untrusted input: the short form of npm run fuzz",
  async (_, target) => {
    const { failure, cases } = await fuzz(target, short);
    expect(failure?.error, failure?.input.toString("latin1")).toBeUndefined();
    expect(cases).toBeGreaterThan(0);
  },
);

test("no route answers 500, whatever it is sent", async () => {
  const { failure, cases } = await fuzzRoutes({ ...short, durationMs: 4_000 });
  expect(failure?.error, failure?.input.toString()).toBeUndefined();
  expect(cases).toBeGreaterThan(0);
});

test("an input that is not borne is found, and shown", async () => {
  const target = {
    name: "a reader with a fault",
    seeds: [Buffer.from("{}")],
    run: (input: Buffer) => {
      if (input.includes("__proto__") && input.includes("[")) throw new Error("not borne");
    },
  };
  const { failure } = await fuzz(target, { ...short, casesMax: 200_000, durationMs: Number.POSITIVE_INFINITY });
  expect(failure?.error).toMatchObject({ message: "not borne" });
  expect(failure?.input.toString()).toContain("__proto__");
});
