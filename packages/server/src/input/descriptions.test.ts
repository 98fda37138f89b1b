import { expect, test } from "vitest";
import { z } from "zod";
import { described, descriptions } from "./descriptions.ts";

test("a description belongs to one use of a schema, not to all of them", () => {
  const time = z.iso.datetime();
  const beganAt = described(time, "The beginning");
  const endsAt = described(time, "The end");
  expect([time, beganAt, endsAt].map((schema) => descriptions.get(schema)?.description)).toEqual([
    undefined,
    "The beginning",
    "The end",
  ]);
});
