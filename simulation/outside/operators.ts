import type { Hint } from "../../packages/server/src/delivery/store.ts";
import { queueOf } from "../../packages/server/src/notification.ts";
import type { SimulationContext } from "../context.ts";
import type { SimulatedNotification } from "../database/tables.ts";
import { closeCircuit } from "../database/tables.ts";
import { failingModes, type Merchant } from "./merchant.ts";

/** The actions of operators and partners meanwhile: each change is a row, then a hint. */
export function simulatedOperators(context: SimulationContext) {
  const { world, database, tables, notifications, instances } = context;
  const { random, agenda } = world;

  function start(): void {
    agenda.after(random.between(100, 1_500), () => {
      if (!database.weather.isDown) act();
      start();
    });
  }

  /** Everything is in order again, at nearly every endpoint. */
  function settle(): void {
    for (const [number, merchant] of tables.merchants.entries()) {
      setPaused(merchant, false);
      // At some partners one endpoint hangs, or all.
      for (const [at, endpoint] of merchant.endpoints.entries()) {
        endpoint.setMode(number % 8 === 7 || (number % 4 === 3 && at === 0) ? "hangs" : "accepts", world.nowMs);
        endpoint.goneUrls.clear();
      }
    }
    // An endpoint that failed for long is probed after minutes: people do not wait for that.
    for (const row of tables.circuits.values()) {
      const merchant = tables.merchantOf(row.partnerId);
      const hangs = merchant?.endpoints.some(({ origin, mode }) => origin === row.queue && mode === "hangs");
      if (row.circuit.state !== "closed" && !hangs) closeCircuit(row);
    }
    world.note("people", "settle everything", database.nowUs());
    notifications.circuitsChanged();
  }

  function act(): void {
    const { isStormy } = context;
    const merchant = random.pick(tables.merchants);
    const acts = [
      () => pause(merchant),
      () => redeliver(20),
      () => redeliver(200),
      () => closeOne(),
      () => move(merchant),
      () => endpointTurns(merchant),
      () => endpointTurns(merchant),
      () => endpointTurns(merchant),
    ];
    if (isStormy) random.pick(acts)();
    else redeliver(3);
  }

  function pause(merchant: Merchant): void {
    setPaused(merchant, true);
    agenda.after(random.between(200, 15_000), () => setPaused(merchant, false));
  }

  function setPaused(merchant: Merchant, isPaused: boolean): void {
    if ((merchant.partner.state === "paused") === isPaused) return;
    world.note("people", isPaused ? "pause" : "resume", merchant.id);
    merchant.setState(isPaused ? "paused" : "active");
    notifications.partnerChanged(merchant.id);
  }

  /** Another URL is registered: for all commands, or for one, which may have none of its own again. */
  function move(merchant: Merchant): void {
    const { nowMs } = world;
    const command = random.chance(0.3) ? undefined : random.pick(["SALE", "VOID", "SETTLEMENT"] as const);
    const endpoint =
      command !== undefined && random.chance(0.3) ? undefined : random.within(0, merchant.endpoints.length - 1);
    world.note("people", "register", merchant.id, command, endpoint);
    merchant.register(endpoint, command, nowMs);
    notifications.partnerChanged(merchant.id);
  }

  function redeliver(most: number): void {
    const nowUs = database.nowUs();
    const asked = Array.from({ length: 1 + random.within(0, most - 1) }, () => anyNotification());
    for (const one of new Set(asked)) {
      if (one === undefined) continue;
      const { round, command } = one;
      const toRegistered = random.chance(0.3);
      // Others were parked, and taken out again, while an earlier reading of them is still in a worker's memory.
      if (one.state === "pending" && random.chance(0.5)) {
        sendNow(one, toRegistered);
        continue;
      }
      const callBackUrl = toRegistered ? null : one.callBackUrl;
      const settings = tables.merchantOf(one.partnerId)?.settingsHeld(world.nowMs, random);
      const queue = queueOf({ callBackUrl, command }, settings);
      const scheduleStartMs = Math.floor(nowUs / 1_000);
      const changes = { state: "pending", round: round + 1, attemptsMade: 0, asked: 0, dueAtUs: nowUs } as const;
      tables.change(one, { ...changes, isAsked: false, requests: 0, scheduleStartMs, toRegistered, queue });
      one.sentNow = 0;
      world.note("people", "redeliver", one.id, "round", one.round);
      hint({ partnerId: one.partnerId, queue });
    }
  }

  /** One that waits keeps its round and its step; and its queue, if an instance of an older version is asked. */
  function sendNow(one: SimulatedNotification, toRegistered: boolean): void {
    const dueAtUs = Math.min(one.dueAtUs, database.nowUs());
    const changes = { dueAtUs, isAsked: one.attemptsMade > 0, requests: one.requests + 1 };
    tables.change(one, { ...changes, toRegistered: one.toRegistered || toRegistered });
    world.note("people", "send now", one.id, "attempt", one.attemptsMade);
    hint({ partnerId: one.partnerId, queue: one.queue });
  }

  /** The process that was asked passes it on, when it has the answer to its statement. */
  function hint(hint: Hint): void {
    if (instances.size === 0) return;
    const { loop, hints } = random.pick([...instances]);
    agenda.after(database.tookMs(0.2), () => loop.enter(() => hints.due(hint)));
  }

  function anyNotification() {
    if (tables.ended.length > 0 && random.chance(0.8)) return random.pick(tables.ended);
    const rows = [...tables.pending.queues(random.pick(tables.merchants).id).values()].flat();
    return rows.length === 0 ? undefined : random.pick(rows);
  }

  function closeOne(): void {
    const tripped = [...tables.circuits.values()].filter(({ circuit }) => circuit.state !== "closed");
    if (tripped.length === 0) return;
    const row = random.pick(tripped);
    world.note("people", "close", row.partnerId, row.queue);
    closeCircuit(row);
    notifications.circuitsChanged();
  }

  function endpointTurns(merchant: Merchant): void {
    const { nowMs } = world;
    const endpoint = random.pick(merchant.endpoints);
    if (random.chance(0.1)) endpoint.goneUrls.add(`${endpoint.origin}/old`);
    else endpoint.setMode(random.chance(0.5) ? "accepts" : random.pick(failingModes), nowMs);
    world.note("endpoint", endpoint.origin, endpoint.mode);
  }

  return { start, settle };
}
