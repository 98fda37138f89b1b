import { EventEmitter } from "node:events";
import type { Client } from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { openTestDatabase } from "../../../../test/support/connections.ts";
import { PostgresIntakeLocks } from "./intake-locks.ts";

/** A connection to a server that may disappear without a word. */
class Connection extends EventEmitter {
  isSilent = false;
  isEnded = false;

  async query() {
    if (this.isSilent) throw new Error("Query read timeout");
    return { rows: [{ mine: true }] };
  }

  async end(): Promise<void> {
    this.isEnded = true;
    this.emit("end");
  }
}

test("a connection without an answer is given up with its locks, and the next file gets another one", async () => {
  const opened: Connection[] = [];
  const locks = new PostgresIntakeLocks(async () => {
    opened.push(new Connection());
    return opened.at(-1) as unknown as Client;
  });
  const held = await locks.hold("first.jsonl");
  for (const connection of opened) connection.isSilent = true;
  await expect(locks.hold("second.jsonl")).rejects.toThrow("Query read timeout");
  expect(held?.lost.aborted).toBe(true);
  expect(await locks.hold("second.jsonl")).toBeDefined();
  expect(opened).toHaveLength(2);
  await locks.close();
});

test("a lock whose connection gives no answer is lost while its file is read, and free once that has ended", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const connection = new Connection();
  const locks = new PostgresIntakeLocks(async () => connection as unknown as Client);
  const held = await locks.hold("a.jsonl");
  await vi.advanceTimersByTimeAsync(5_000);
  expect(held?.lost.aborted).toBe(false);
  connection.isSilent = true;
  await vi.advanceTimersByTimeAsync(5_000);
  expect([held?.lost.aborted, vi.getTimerCount(), connection.isEnded]).toEqual([true, 0, false]);
  await held?.release();
  expect(connection.isEnded).toBe(true);
});

test("a file is held by one instance until that one releases it, or its connection ends", async () => {
  const { connectDirectly } = await openTestDatabase();
  const [one, other] = [new PostgresIntakeLocks(connectDirectly), new PostgresIntakeLocks(connectDirectly)];
  const [first] = [await one.hold("a.jsonl"), await one.hold("b.jsonl")];
  const isFree = async (name: string) => (await other.hold(name)) !== undefined;
  expect([await isFree("a.jsonl"), await isFree("b.jsonl"), await isFree("c.jsonl")]).toEqual([false, false, true]);
  await first?.release();
  expect([await isFree("a.jsonl"), await isFree("b.jsonl")]).toEqual([true, false]);
  await one.close();
  await expect.poll(() => isFree("b.jsonl")).toBe(true);
  await other.close();
});
