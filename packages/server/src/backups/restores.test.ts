import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { newId } from "../ids.ts";
import { type RestoreStore, Restores } from "./restores.ts";

const command = {
  ...{ partnerId: newId<"partner">(), id: newId<"transaction">() },
  ...{ command: "SALE", reqId: null, createdAtMs: 0 },
};

test("the report has the commands that the last restore holds, until they are released", async () => {
  let releasedAtMs: number | null = null;
  const store: RestoreStore = {
    last: async () => ({ name: "the last", endsAtMs: null, heldAtMs: 0, held: 1, releasedAtMs }),
    shares: async () => [],
    commands: async (name) => (name === "the last" ? [command] : []),
    release: async (name) => {
      await setImmediate();
      if (name === "the last") releasedAtMs = 1;
    },
  };
  const restores = new Restores(store);
  expect(await restores.report()).toMatchObject({ restore: { releasedAtMs: null }, commands: [command] });
  expect(await restores.release()).toMatchObject({ restore: { releasedAtMs: 1 }, commands: [] });
  const never = new Restores({ ...store, last: async () => undefined });
  expect([await never.report(), await never.release()]).toEqual([undefined, undefined]);
});
