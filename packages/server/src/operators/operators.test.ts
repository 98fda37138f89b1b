import { expect, test } from "vitest";
import type { OperatorRecord, OperatorStore } from "./operator.ts";
import { Operators } from "./operators.ts";

test("an operator's use is stored once a minute, and the times of 1,000 operators are remembered", async () => {
  const byToken = new Map<string, OperatorRecord>();
  const used: string[] = [];
  const store: OperatorStore = {
    async add(operator, tokenHash) {
      const record = { ...operator, createdAt: new Date(0), lastUsedAt: null, revokedAt: null };
      byToken.set(tokenHash.toString("hex"), record);
      return record;
    },
    list: async () => [...byToken.values()],
    findByToken: async (tokenHash) => byToken.get(tokenHash.toString("hex")),
    revoke: async () => undefined,
    used: async (id) => void used.push(id),
    dropOverSignIns: async () => undefined,
  };
  const operators = new Operators(store, { nowMs: () => 0, monotonicMs: () => 0 });
  const signIn = () => operators.signIn({ subject: "https://login.example ada", name: "Ada", role: "viewer" });
  const first = await signIn();
  await operators.find(first.token);
  await operators.find(first.token);
  expect(used).toEqual([first.operator.id]);
  for (let others = 0; others < 1_000; others += 1) await operators.find((await signIn()).token);
  await operators.find(first.token);
  expect(used.filter((id) => id === first.operator.id)).toHaveLength(2);
});
