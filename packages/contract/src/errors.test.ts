import { inspect } from "node:util";
import { expect, test } from "vitest";
import { NotAuthentic } from "./errors.ts";

test("a refusal looks the same, whatever its reason", () => {
  const [one, other] = [new NotAuthentic("signature"), new NotAuthentic("decryption")];
  const faces = (error: Error) => [
    String(error),
    inspect(error, { showHidden: true }),
    JSON.stringify(error),
    error.stack,
    structuredClone(error).stack,
    Object.getOwnPropertyNames(error),
    Object.entries(error),
  ];
  expect(faces(one)).toEqual(faces(other));
  expect(inspect(one, { showHidden: true })).not.toContain("signature");
});

test("a refusal reports its reason on request", () => {
  expect(new NotAuthentic("two_names").reason).toBe("two_names");
  expect(new NotAuthentic("two_names").code).toBe("not_authentic");
  expect(new NotAuthentic("two_names")).toBeInstanceOf(Error);
});
