import { expect, test } from "vitest";
import { serializer } from "./chains.ts";

test("functions of one name run one after the other, in the order of the calls", async () => {
  const serially = serializer();
  const first = Promise.withResolvers<void>();
  const began: string[] = [];
  const run = (id: string, until: Promise<void>) => () => {
    began.push(id);
    return until.then(() => id);
  };
  const [a, b, other] = [
    serially("chain", run("a", first.promise)),
    serially("chain", run("b", Promise.resolve())),
    serially("another chain", run("other", Promise.resolve())),
  ];
  expect(await other).toBe("other");
  expect(began).toEqual(["a", "other"]);
  first.resolve();
  expect(await Promise.all([a, b])).toEqual(["a", "b"]);
});

test("a function that fails fails alone: those that wait behind it run", async () => {
  const serially = serializer();
  const failing = serially("chain", () => Promise.reject(new Error("this IPN alone")));
  const behind = serially("chain", () => Promise.resolve("the next one"));
  await expect(failing).rejects.toThrow("this IPN alone");
  expect(await behind).toBe("the next one");
  expect(await serially("chain", () => Promise.resolve("later"))).toBe("later");
});
