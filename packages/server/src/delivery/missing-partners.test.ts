import { expect, test } from "vitest";
import { newId } from "../ids.ts";
import { MissingPartners } from "./missing-partners.ts";

test("a partner is missing if it is not known at two ticks in a row: until then it may be on its way", () => {
  const [one, other] = [newId<"partner">(), newId<"partner">()];
  const missing = new MissingPartners();
  expect([missing.look([one]), missing.has(one)]).toEqual([[], false]);
  expect([missing.look([one, other]), missing.has(one), missing.has(other)]).toEqual([[one], true, false]);
  expect([missing.look([]), missing.has(one)]).toEqual([[], false]);
  expect(missing.look([one])).toEqual([]);
});
