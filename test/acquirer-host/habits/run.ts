import { randomBytes, randomUUID } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Cleanup } from "../../../bench/command.ts";
import { type SeededRandom, seeded } from "../../../faults/random.ts";
import { type Difference, differencesOf } from "./comparison.ts";
import { type Deployment, deploy } from "./deployment.ts";
import { HabitualHost } from "./host.ts";

export interface HabitsOptions {
  readonly seed: number;
  readonly commands: number;
  /** A folder for what explains a difference. */
  readonly keep?: string | undefined;
}

export interface HabitsResult {
  readonly differences: readonly Difference[];
  /** The number of messages that met each habit. */
  readonly met: ReadonlyMap<string, number>;
  /** The number of commands that came to the host: the others ended before, or were refused. */
  readonly reached: number;
}

const terminals = 48;
/** An instance is killed, or stopped, after so many commands. */
const commandsPerKill = 1_200;
const quietWithinMs = 600_000;

/** Sells at a host with habits, while instances are killed, and compares its books with the partner's IPNs. */
export async function runHabits(
  { seed, commands, keep }: HabitsOptions,
  cleanup: Cleanup,
  note: (line: string) => void,
): Promise<HabitsResult> {
  const random = seeded(seed);
  if (keep !== undefined) await mkdir(keep, { recursive: true });
  const keys = { macKey: randomBytes(16), keyEncryptionKey: randomBytes(16) };
  const host = new HabitualHost(random.fork("host"), keys, keep && join(keep, "host.log"));
  const ports = await host.listen();
  cleanup.add(() => host.close());
  const deployment = await deploy(ports, keys, cleanup, keep);
  let taken = 0;
  const isOver = () => taken >= commands;
  const tills = Array.from({ length: terminals }, (_, nth) =>
    sell(deployment, nth, random.fork(`till ${nth}`), { isOver, onTaken: () => (taken += 1) }),
  );
  const sold = Promise.all(tills);
  await kill(deployment, random.fork("kills"), commands, () => taken, note);
  await sold;
  note("the host has no habits any more");
  host.hasHabits = false;
  await quiet(deployment, host, note);
  const met = new Map<string, number>();
  for (const name of [...host.metBy.values()].flat()) met.set(name, (met.get(name) ?? 0) + 1);
  for (const [answered, times] of host.own.answered) met.set(`own request: ${answered}`, times);
  const differences = await differencesOf(deployment, host);
  if (keep !== undefined)
    await writeFile(join(keep, "rows.json"), JSON.stringify(await rowsOf(deployment, differences)));
  return { differences, met, reached: host.reached.size };
}

/** What the database has of the transactions that differ, and every event of the link. */
async function rowsOf({ query }: Deployment, differences: readonly Difference[]): Promise<unknown> {
  const keys = differences.map(({ key }) => `'${key}'`).join();
  return {
    transactions: await query(`
      SELECT to_jsonb(t) AS transaction, to_jsonb(r) AS reversal FROM transactions t
      LEFT JOIN reversals r ON r.transaction_id = t.id
      WHERE concat(t.tid, ' ', t.facts->'fields'->>'traceNo') IN (${keys || "''"})`),
    events: await query("SELECT to_jsonb(e) AS event FROM events e ORDER BY id"),
  };
}

interface Sold {
  readonly id: string;
  readonly isPreAuth: boolean;
}

/** A terminal's Sales, by whether their batch is settled: only then can they be refunded. */
interface Charges {
  open: string[];
  settled: string[];
}

interface Selling {
  readonly isOver: () => boolean;
  /** Called for each command that was not refused before anything was written. */
  readonly onTaken: () => void;
}

/** One terminal: one command after the other. */
async function sell(
  deployment: Deployment,
  nth: number,
  random: SeededRandom,
  { isOver, onTaken }: Selling,
): Promise<void> {
  const { caller, partner } = deployment;
  const terminal = { tid: `T${nth.toString().padStart(7, "0")}`, mid: "M00000000000001" };
  const charges: Charges = { open: [], settled: [] };
  let last: Sold | undefined;
  let unknown: string | undefined;
  while (!isOver()) {
    const reqId = randomUUID();
    const command = chosen(random, last, unknown, charges, terminal);
    const isPreAuth = command["command"] === "PREAUTH";
    let answer = await caller.call("POST", "/v1/commands", partner.apiKey, { reqId, ...command });
    if (answer.status === 0) {
      await caller.pause();
      // As a partner does: under the same reqId it cannot charge twice.
      answer = await caller.call("POST", "/v1/commands", partner.apiKey, { reqId, ...command });
    }
    const { status, body } = answer;
    unknown = status === 202 || body["status"] === "ERROR" ? reqId : undefined;
    const hasSold = status === 200 && body["status"] === "SUCCESS" && (isPreAuth || command["command"] === "SALE");
    last = hasSold ? { id: String(body["id"]), isPreAuth } : undefined;
    if (hasSold && !isPreAuth) charges.open.push(String(body["id"]));
    // One that completes later, or otherwise, makes a Refund that is refused.
    if (command["command"] === "SETTLEMENT") [charges.settled, charges.open] = [charges.open, []];
    if (status === 409 || status === 503) await caller.pause();
    else onTaken();
  }
}

function chosen(
  random: SeededRandom,
  last: Sold | undefined,
  unknown: string | undefined,
  { settled }: Charges,
  terminal: Readonly<Record<string, string>>,
): Readonly<Record<string, unknown>> {
  const dice = random.within(1, 100);
  if (last !== undefined && dice <= 18) return { command: "VOID", transactionId: last.id };
  if (last !== undefined && !last.isPreAuth && dice <= 24) return { command: "REVERSAL", transactionId: last.id };
  if (last?.isPreAuth === true && dice <= 75) {
    return { command: "PREAUTH_COMPLETE", transactionId: last.id, amount: "1000" };
  }
  if (unknown !== undefined && dice <= 10) return { command: "REVERSAL", originalReqId: unknown };
  if (settled.length > 0 && dice >= 60 && dice < 72) {
    return { command: "REFUND", transactionId: random.pick(settled), amount: String(random.within(1, 1_000)) };
  }
  if (dice >= 97) return { command: "SETTLEMENT", ...terminal };
  return {
    command: dice >= 85 ? "PREAUTH" : "SALE",
    ...terminal,
    amount: String(random.within(1_000, 9_000_000)),
    currency: "VND",
    ...(random.chance(0.3) && { allowPartial: true }),
    merchantTransId: "habits",
    card: { token: "tok_approve", number: "411111******1111", swipeType: "C", aid: "A0000000031010" },
  };
}

/** Kills or stops an instance now and then, until all commands were taken. */
async function kill(
  { instances }: Deployment,
  random: SeededRandom,
  commands: number,
  taken: () => number,
  note: (line: string) => void,
): Promise<void> {
  const every = Math.min(commandsPerKill, commands / 2);
  for (let next = every; taken() < commands; ) {
    await pause(50);
    if (taken() < next) continue;
    next += every;
    const instance = random.pick(instances);
    const isStop = random.next() < 0.3;
    note(`${taken()} commands; an instance is ${isStop ? "stopped" : "killed"}`);
    await (isStop ? instance.stop() : instance.kill());
    await instance.start();
  }
}

/**
 * Until nothing is in doubt but what waits for the operator, every IPN has been delivered, and the host has sent what it
 * owes: twice in a row, because an event of an answer that nobody asked for is written a moment later.
 */
async function quiet({ query }: Deployment, host: HabitualHost, note: (line: string) => void): Promise<void> {
  const open = `
    SELECT (SELECT count(*) FROM transactions WHERE state = 'INIT')::int AS commands,
      (SELECT count(*) FROM reversals WHERE state = 'PENDING')::int AS reversals,
      (SELECT count(*) FROM pending)::int AS deliveries`;
  const untilMs = performance.now() + quietWithinMs;
  for (let nth = 0, quietRounds = 0; ; nth += 1) {
    // Their tries are minutes apart, which nobody needs to wait for.
    await query(
      "UPDATE reversals SET due_at = now() WHERE state = 'PENDING' AND due_at > now() + interval '3 seconds'",
    );
    await query("UPDATE settlements SET due_at = now() WHERE due_at > now() + interval '12 seconds'");
    const [found] = await query(open);
    const left = { ...found, owed: host.owed };
    quietRounds = Object.values(left).every((count) => count === 0) ? quietRounds + 1 : 0;
    if (quietRounds === 10) return;
    if (nth % 20 === 0) note(`open: ${JSON.stringify(left)}`);
    if (performance.now() > untilMs) throw new Error(`It does not come to rest: ${JSON.stringify(left)}`);
    await pause(500);
  }
}
