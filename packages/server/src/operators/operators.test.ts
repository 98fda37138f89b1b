import { expect, test } from "vitest";
import type { OperatorRecord, OperatorStore } from "./operators.ts";
import { Operators } from "./operators.ts";

function scene() {
  const byToken = new Map<string, OperatorRecord>();
  const used: string[] = [];
  const state = { nowMs: 0, failing: false };
  const store: OperatorStore = {
    async add(operator, tokenHash) {
      const record = { ...operator, createdAt: new Date(0), lastUsedAt: null, revokedAt: null };
      byToken.set(tokenHash.toString("hex"), record);
      return record;
    },
    list: async () => [...byToken.values()],
    findByToken: async (tokenHash) => byToken.get(tokenHash.toString("hex")),
    async revoke(id) {
      const [hash, found] = [...byToken].find(([, one]) => one.id === id) ?? [];
      if (hash === undefined || found === undefined) return undefined;
      byToken.set(hash, { ...found, revokedAt: new Date(state.nowMs) });
      return byToken.get(hash);
    },
    async used(id) {
      used.push(id);
      if (state.failing) throw new Error("no database");
    },
    dropOverSignIns: async () => undefined,
  };
  const instance = () => new Operators(store, { nowMs: () => state.nowMs, monotonicMs: () => state.nowMs });
  return { state, used, instance, operators: instance() };
}

test("an operator's use is stored once a minute, and the times of 1,000 operators are remembered", async () => {
  const { operators, used, state } = scene();
  const signIn = () => operators.signIn({ subject: "https://login.example ada", name: "Ada", role: "viewer" });
  const first = await signIn();
  await operators.find(first.token);
  await operators.find(first.token);
  expect(used).toEqual([first.operator.id]);
  for (let others = 0; others < 1_000; others += 1) await operators.find((await signIn()).token);
  await operators.find(first.token);
  expect(used.filter((id) => id === first.operator.id)).toHaveLength(2);
  // One that could not be stored is stored with the next request.
  state.failing = true;
  const other = await signIn();
  await operators.find(other.token);
  await operators.find(other.token);
  expect(used.filter((id) => id === other.operator.id)).toHaveLength(2);
});

const dayMs = 86_400_000;

test.each([
  [undefined, 90],
  [1, 1],
  [366, 366],
])("a token for %s days is valid for %i days, and not a moment longer", async (expiresInDays, days) => {
  const { operators, state } = scene();
  const { token } = await operators.add({ name: "Ada", role: "admin", expiresInDays });
  state.nowMs = days * dayMs - 1;
  expect(await operators.find(token)).toMatchObject({ name: "Ada" });
  // What is remembered ends in time, too.
  state.nowMs += 1;
  expect(await operators.find(token)).toBeUndefined();
});

test("a token that was revoked is refused at once, and by other instances within two seconds", async () => {
  const { instance, state } = scene();
  const [here, elsewhere] = [instance(), instance()];
  const { operator, token } = await here.add({ name: "Ada", role: "admin" });
  expect([await here.find(token), await elsewhere.find(token)]).toMatchObject([{ name: "Ada" }, { name: "Ada" }]);
  await here.revoke(operator.id);
  expect(await here.find(token)).toBeUndefined();
  state.nowMs += 2_000;
  expect(await elsewhere.find(token)).toBeUndefined();
});
