import assert from "node:assert/strict";
import { type Acquirer, type AcquirerAnswer, type AcquirerMessage, NoAnswer } from "./acquirer.ts";
import type { Till } from "./till.fixture.ts";

/** Registers one check, on a link of its own. `other` is a second terminal of the merchant. */
export type Check = (name: string, run: (acquirer: Acquirer, till: Till, other: () => Till) => Promise<void>) => void;

export async function codeOf(acquirer: Acquirer, message: AcquirerMessage): Promise<string> {
  return (await acquirer.ask(message, patient())).responseCode;
}

/** The answer of a message that must be approved. */
export async function approval(acquirer: Acquirer, message: AcquirerMessage): Promise<AcquirerAnswer> {
  const answer = await acquirer.ask(message, patient());
  assert.equal(answer.responseCode, "00");
  return answer;
}

/** Asserts that a message is answered, and not approved. */
export async function declines(acquirer: Acquirer, message: AcquirerMessage): Promise<void> {
  const code = await codeOf(acquirer, message);
  assert.ok(!acquirer.approvals.has(code), `${message.command} was approved with ${code}`);
}

export async function rejectsUnanswered(acquirer: Acquirer, message: AcquirerMessage): Promise<void> {
  await assert.rejects(acquirer.ask(message, { ...patient(), timeoutMs: 20 }), NoAnswer);
}

/** The answer of a message that must not be answered in time, and then once. */
export async function lateAnswer(acquirer: Acquirer, message: AcquirerMessage): Promise<AcquirerAnswer> {
  const late = Promise.withResolvers<AcquirerAnswer>();
  const seen: string[] = [];
  const onLateAnswer = (answer: AcquirerAnswer) => {
    seen.push("late answer");
    late.resolve(answer);
  };
  await assert.rejects(acquirer.ask(message, { timeoutMs: 20, onLateAnswer }), NoAnswer);
  seen.push("time-out");
  const answer = await late.promise;
  await acquirer.close();
  assert.deepEqual(seen, ["time-out", "late answer"]);
  return answer;
}

/** In time is what comes while the test runs. */
export function patient() {
  return { timeoutMs: 600_000, onLateAnswer: () => assert.fail("an answer in time is no late answer") };
}
