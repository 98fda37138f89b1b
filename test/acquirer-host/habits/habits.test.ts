import { afterAll, expect, test } from "vitest";
import { Cleanup } from "../../../bench/command.ts";
import { runHabits } from "./run.ts";

const cleanup = new Cleanup();
afterAll(() => cleanup.run());

test("no charge in the books of a host with habits stands unseen", async () => {
  const notes: string[] = [];
  const { differences, met, reached } = await runHabits({ seed: 1, commands: 1_000 }, cleanup, (line) =>
    notes.push(line),
  );
  expect(
    differences.filter(({ isOpen }) => !isOpen),
    notes.join("\n"),
  ).toEqual([]);
  // The books of a host without habits would agree whatever the service does.
  expect(met.size).toBeGreaterThan(30);
  expect([...met.keys()].filter((name) => name.startsWith("own request")).length).toBeGreaterThan(2);
  expect(differences.length).toBeGreaterThan(0);
  expect(reached).toBeGreaterThan(100);
});
