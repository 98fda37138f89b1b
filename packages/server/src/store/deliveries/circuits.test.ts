import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { type Circuit, closedCircuit } from "../../delivery/limits/circuit.ts";
import { type CircuitChange, circuitsPerPartnerMax } from "../../delivery/limits/circuits.ts";
import { newId, type PartnerId, shardOf } from "../../ids.ts";
import { insertPartner } from "../rows.fixture.ts";
import { postgresCircuits, postgresEndpoints, writeCircuits } from "./circuits.ts";

const origin = "https://partner.example";
const tripped: Circuit = { state: "open", failures: 5, probes: 0, probeInMs: 5_000, lastReason: "timeout" };

let partnerId: PartnerId;

const connections = await openTestDatabase();
const circuits = postgresCircuits(connections.homes);
const endpoints = postgresEndpoints(connections);
beforeEach(async () => {
  await connections.pool.query("TRUNCATE endpoints, events");
  partnerId = await insertPartner(connections.pool);
});
let changes = 0;

function changeOf(circuit: Circuit, more: Partial<CircuitChange> = {}): CircuitChange {
  const endpointId = newId<"endpoint">();
  changes += 1;
  const of = { partnerId, queue: origin, endpointId, kind: "origin", target: origin } as const;
  return { ...of, circuit, before: closedCircuit, changeNo: changes, epoch: 1, controlNo: 0, event: null, ...more };
}

const opened = () => ({ id: newId<"event">(), kind: "breaker_open" }) as const;

async function write(...written: CircuitChange[]): Promise<void> {
  const client = await connections.engine.connect();
  try {
    await writeCircuits(client, written, false);
  } finally {
    client.release();
  }
}

const load = () => circuits.load([shardOf(partnerId)]);
const rows = async () => (await connections.pool.query("SELECT * FROM endpoints ORDER BY queue")).rows;
const events = async () => (await connections.pool.query("SELECT kind, subject_id, detail FROM events")).rows;
const loaded = (circuit: object, controlNo = 0) => ({ partnerId, queue: origin, circuit, controlNo });

describe("a circuit that its owner writes", () => {
  test("is what the next owner of its shard loads, with the time to its probe", async () => {
    await write(changeOf(tripped, { event: opened() }));
    const [found, ...more] = await load();
    expect(more).toEqual([]);
    expect(found).toEqual(loaded({ ...tripped, probeInMs: expect.any(Number) }));
    expect(found?.circuit.probeInMs).toBeLessThanOrEqual(5_000);
    expect(await circuits.load([(shardOf(partnerId) + 1) % 256])).toEqual([]);
  });

  test("keeps the id of its row, and when it tripped, through every later change", async () => {
    const first = changeOf(tripped, { event: opened() });
    await write(first);
    const [{ opened_at: openedAt }] = (await rows()) as [{ opened_at: Date }];
    expect(openedAt).toBeInstanceOf(Date);
    const probe = { ...tripped, failures: 6, probes: 1, probeInMs: 10_000, lastReason: "connect" } as const;
    await write(changeOf(probe));
    expect(await rows()).toMatchObject([
      { id: first.endpointId, state: "open", failures: 6, probes: 1, last_reason: "connect", opened_at: openedAt },
    ]);
    await write(changeOf(closedCircuit, { event: { id: newId<"event">(), kind: "breaker_closed" } }));
    expect(await rows()).toMatchObject([{ id: first.endpointId, state: "closed", opened_at: null, probe_at: null }]);
    const detail = { target: origin, reason: "timeout", failures: 5 };
    expect(await events()).toMatchObject([
      { kind: "breaker_open", subject_id: first.endpointId, detail },
      { kind: "breaker_closed", subject_id: first.endpointId },
    ]);
  });

  test("is of an earlier owner's, and then dropped without an event", async () => {
    await write(changeOf(tripped, { epoch: 3 }));
    const late = changeOf({ ...tripped, state: "gone", probeInMs: null }, { epoch: 2, event: opened() });
    await write(late);
    expect(await rows()).toMatchObject([{ state: "open", epoch: 3 }]);
    expect(await events()).toEqual([]);
  });

  test("takes the place of what an earlier owner wrote, and of what the same one did", async () => {
    await write(changeOf(tripped, { epoch: 3 }));
    for (const epoch of [3, 7]) await write(changeOf({ ...tripped, probes: epoch }, { epoch }));
    expect(await rows()).toMatchObject([{ probes: 7, epoch: 7 }]);
  });

  test("that changed several times in one commit stands as it was last, with every event", async () => {
    const closed = { id: newId<"event">(), kind: "breaker_closed" } as const;
    const [first, last] = [changeOf(tripped, { event: opened() }), changeOf(closedCircuit, { event: closed })];
    await write(last, first);
    expect(await rows()).toMatchObject([{ state: "closed" }]);
    expect((await events()).map(({ kind }) => kind).sort()).toEqual(["breaker_closed", "breaker_open"]);
  });

  test("adds one event when it is repeated unchanged", async () => {
    const change = changeOf(tripped, { event: opened() });
    await write(change);
    await write(change);
    expect(await events()).toHaveLength(1);
  });
});

test("circuits that fail, are tripped or gone, or were changed by a person are loaded, and no others", async () => {
  const failing: Circuit = { ...closedCircuit, failures: 3, lastReason: "status" };
  const gone: Circuit = { ...tripped, state: "gone", probeInMs: null };
  const states = { well: closedCircuit, failing, tripped, gone, controlled: closedCircuit };
  await write(...Object.entries(states).map(([queue, circuit]) => changeOf(circuit, { queue })));
  await connections.pool.query("UPDATE endpoints SET control_no = 1 WHERE queue = 'controlled'");
  const queues = (await load()).map(({ queue }) => queue);
  expect(queues.sort()).toEqual(["controlled", "failing", "gone", "tripped"]);
  expect(await circuits.loadChangedByHand([shardOf(partnerId)])).toEqual([
    { partnerId, queue: "controlled", circuit: closedCircuit, controlNo: 1 },
  ]);
  expect(await circuits.loadChangedByHand([(shardOf(partnerId) + 1) % 256])).toEqual([]);
});

test("of very many, a new owner loads those of each partner that changed last, in their order", async () => {
  await connections.pool.query(
    `INSERT INTO endpoints (partner_id, id, kind, target, queue, state, updated_at)
     SELECT $1, gen_random_uuid(), 'url', 't', 'url ' || i, 'gone', now() + i * interval '1 second'
     FROM generate_series(1, $2::integer) AS i`,
    [partnerId, circuitsPerPartnerMax + 5],
  );
  const queues = (await load()).map(({ queue }) => queue);
  expect(queues).toHaveLength(circuitsPerPartnerMax);
  expect([queues[0], queues.at(-1)]).toEqual(["url 6", `url ${circuitsPerPartnerMax + 5}`]);
});

test("endpoints are listed by partner and state, the newest first, page by page", async () => {
  const ids = ["a", "b", "c"].map((queue) => ({ queue, endpointId: newId<"endpoint">() }));
  for (const one of ids) await write(changeOf(tripped, one));
  const [other, closed] = [await insertPartner(connections.pool), newId<"endpoint">()];
  await write(changeOf(tripped, { partnerId: other }), changeOf(closedCircuit, { queue: "d", endpointId: closed }));
  const [oldest, middle, newest] = ids.map(({ endpointId }) => endpointId);
  const list = async (more: object) => {
    const { items, next } = await endpoints.list({ partnerId, state: "open", limit: 2, ...more });
    return [items.map(({ id }) => id), next];
  };
  expect(await list({})).toEqual([[newest, middle], middle]);
  expect(await list({ after: middle })).toEqual([[oldest], null]);
  expect(await list({ state: "closed" })).toEqual([[closed], null]);
  expect((await list({ partnerId: undefined, limit: 10 }))[0]).toHaveLength(4);
});

describe("an endpoint that a person closes", () => {
  test("is closed with its event, raises its control number, and tells the owner of its shard", async () => {
    const listening = await connections.connectDirectly();
    onTestFinished(() => listening.end());
    const told = Promise.withResolvers<string>();
    listening.on("notification", ({ channel }) => told.resolve(channel));
    await listening.query("LISTEN paybell_endpoint");
    const { endpointId } = changeOf(tripped);
    await write(changeOf({ ...tripped, probes: 2 }, { endpointId, epoch: 4 }));

    const closed = await endpoints.close(endpointId, partnerId);
    expect(closed).toMatchObject({
      id: endpointId,
      state: "closed",
      failures: 0,
      probes: 0,
      openedAt: null,
      probeAt: null,
    });
    expect(await told.promise).toBe("paybell_endpoint");
    expect(await load()).toEqual([loaded({ ...closedCircuit, lastReason: "timeout" }, 1)]);
    expect(await events()).toEqual([
      { kind: "breaker_closed", subject_id: endpointId, detail: expect.objectContaining({ by: "hand", failures: 5 }) },
    ]);
  });

  test("stays closed: what its owner made of older knowledge is dropped, what it knows now is written", async () => {
    const { endpointId } = changeOf(tripped);
    await write(changeOf(tripped, { endpointId }));
    await endpoints.close(endpointId, undefined);
    await write(changeOf({ ...tripped, probes: 1 }, { epoch: 9, event: opened() }));
    expect(await rows()).toMatchObject([{ state: "closed", control_no: 1 }]);
    expect((await events()).map(({ kind }) => kind)).toEqual(["breaker_closed"]);
    await write(changeOf(tripped, { controlNo: 1, event: opened() }));
    expect(await rows()).toMatchObject([{ state: "open", control_no: 1 }]);
    expect(await events()).toHaveLength(2);
  });

  test("stays as it is when it is closed already, or another partner's; one that is unknown is not there", async () => {
    const { endpointId } = changeOf(tripped);
    await write(changeOf(tripped, { endpointId }));
    expect(await endpoints.close(endpointId, newId<"partner">())).toBeUndefined();
    expect(await endpoints.close(newId<"endpoint">(), undefined)).toBeUndefined();
    expect(await rows()).toMatchObject([{ state: "open", control_no: 0 }]);
    await endpoints.close(endpointId, partnerId);
    expect(await endpoints.close(endpointId, partnerId)).toMatchObject({ state: "closed" });
    expect(await rows()).toMatchObject([{ control_no: 1 }]);
    expect(await events()).toHaveLength(1);
  });
});
