import { type Process, startProcess } from "../bench/processes/channel.ts";
import type { AttackerMethods, AttackName } from "./attacker.ts";
import type { Slowdown } from "./catalogue.ts";
import type { Deployment, RegisteredPartner } from "./deployment.ts";
import { amountOf, merchantTransIdOf, reqIdOf } from "./journal.ts";

const saleEveryMs = 25;
const mid = "M00000000000003";
const windows = 2;
const windowMs = 15_000;

/**
 * What one partner does to the service: how much longer do the Sales of another one take meanwhile? There are windows
 * without and with the attack, in turns, so that what else changes on the machine changes both. The run judges the sum
 * of all rounds: of one, 12 Sales are above the 99th percentile. The attacker is a process of its own: its work in the
 * event loop that measures would count as the service's.
 *
 * @param last waits between these bounds
 */
export async function slowdownBy(
  name: AttackName,
  stage: Deployment,
  last: (leastMs: number, mostMs: number) => Promise<void>,
): Promise<Slowdown> {
  const [attacker, neighbour] = stage.partners;
  if (attacker === undefined || neighbour === undefined) throw new Error("There is no second partner.");
  const child: Process<AttackerMethods> = startProcess(new URL("./attacker.ts", import.meta.url));
  const quietMs: number[] = [];
  const duringMs: number[] = [];
  try {
    for (let window = 0; window < windows; window += 1) {
      quietMs.push(...(await salesDuring(stage, neighbour, last(windowMs, windowMs))));
      await child.ask("begin", { name, url: urlOf(stage, "/"), apiKey: attacker.apiKey });
      duringMs.push(...(await salesDuring(stage, neighbour, last(windowMs, windowMs))));
      await child.ask("end", undefined);
    }
  } finally {
    await child.stop();
  }
  return { quietMs, duringMs };
}

/** Sends a Sale every 25 ms, whether the one before was answered or not. @returns how long each took */
async function salesDuring(stage: Deployment, partner: RegisteredPartner, lasts: Promise<void>): Promise<number[]> {
  const times: number[] = [];
  const sales: Promise<void>[] = [];
  const timer = setInterval(() => sales.push(sale(stage, partner).then((ms) => void times.push(ms))), saleEveryMs);
  await lasts;
  clearInterval(timer);
  await Promise.all(sales);
  return times;
}

async function sale({ journal, caller }: Deployment, partner: RegisteredPartner): Promise<number> {
  const no = journal.begin(partner.index);
  const command = {
    ...{ command: "SALE", reqId: reqIdOf(no), merchantTransId: merchantTransIdOf(no), currency: "VND", mid },
    ...{ amount: String(amountOf(no)), tid: `N${String(no % 16).padStart(7, "0")}` },
    card: { token: "tok_approve", number: "411111******1111", swipeType: "C", aid: "A0000000031010" },
  };
  const beganMs = performance.now();
  for (;;) {
    const { status, body } = await caller.call("POST", "/v1/commands", partner.apiKey, command);
    if (status === 200 || status === 202) {
      const ms = performance.now() - beganMs;
      journal.accept(no, String(body["id"]));
      return ms;
    }
    await caller.pause();
  }
}

function urlOf({ instances }: Deployment, path: string): string {
  const [instance] = instances;
  if (instance === undefined) throw new Error("There is no instance.");
  return instance.urlOf(path);
}
