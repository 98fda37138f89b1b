import { connect } from "node:net";
import { addAbortSignal } from "node:stream";
import { finished } from "node:stream/promises";
import { Agent, request } from "undici";
import type { Slowdown } from "./catalogue.ts";
import type { Deployment, RegisteredPartner } from "./deployment.ts";
import { amountOf, merchantTransIdOf, reqIdOf } from "./journal.ts";

const connections = 16;
const saleEveryMs = 25;
const mid = "M00000000000003";
const bodyBytes = 64_000;
const reconnectMs = 20;
const pagesUnread = 8;
const windows = 2;
const windowMs = 15_000;

/** Bodies of the largest size, each the dearest to read or to refuse that was found. */
const bodies: readonly string[] = [
  `{"\\u0061":[${"1,".repeat(bodyBytes / 2 - 20)}1]}`,
  JSON.stringify({ command: "SALE", extraData: "4\u200b".repeat(bodyBytes / 4 - 20) }),
  JSON.stringify({ command: "SALE", billId: "cvv=12 ".repeat(bodyBytes / 7 - 20) }),
  JSON.stringify(Object.fromEntries(Array.from({ length: 190 }, (_, at) => [`k${at}${"x".repeat(300)}`, ""]))),
];

/** Resolves when it has ended, after the signal. */
type Attack = (stage: Deployment, partner: RegisteredPartner, ending: AbortSignal) => Promise<unknown>;

/** What one partner does to the service, by name: how much longer do the Sales of another one take meanwhile? */
export const neighbourAttacks = {
  "invalid-bodies": slowdownBy((stage, partner, ending) =>
    called(stage, partner, ending, (turn) => ({
      method: "POST",
      path: "/v1/commands",
      body: bodies[turn % bodies.length] ?? "",
    })),
  ),
  "pages-of-500": slowdownBy((stage, partner, ending) =>
    called(stage, partner, ending, () => ({ method: "GET", path: "/v1/notifications?limit=500" })),
  ),
  "unread-answers": slowdownBy((stage, partner, ending) =>
    Promise.all(Array.from({ length: connections }, () => unread(stage, partner, ending))),
  ),
};

/**
 * Windows without and with the attack, in turns, so that what else changes on the machine changes both. The run judges
 * the sum of all rounds: of one, 12 Sales are above the 99th percentile.
 *
 * @param last waits between these bounds
 */
function slowdownBy(attack: Attack) {
  return async (stage: Deployment, last: (leastMs: number, mostMs: number) => Promise<void>): Promise<Slowdown> => {
    const [attacker, neighbour] = stage.partners;
    if (attacker === undefined || neighbour === undefined) throw new Error("There is no second partner.");
    const quietMs: number[] = [];
    const duringMs: number[] = [];
    for (let window = 0; window < windows; window += 1) {
      quietMs.push(...(await salesDuring(stage, neighbour, last(windowMs, windowMs))));
      const ending = new AbortController();
      const attacking = attack(stage, attacker, ending.signal);
      duringMs.push(...(await salesDuring(stage, neighbour, last(windowMs, windowMs))));
      ending.abort();
      await attacking;
    }
    return { quietMs, duringMs };
  };
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

/** The next request of each connection follows the answer to the one before. */
async function called(
  stage: Deployment,
  { apiKey }: RegisteredPartner,
  ending: AbortSignal,
  next: (turn: number) => { readonly method: "GET" | "POST"; readonly path: string; readonly body?: string },
): Promise<void> {
  const agent = new Agent({ connections });
  const work = async (first: number) => {
    for (let turn = first; !ending.aborted; turn += 1) {
      const { method, path, body } = next(turn);
      const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
      try {
        const answer = await request(urlOf(stage, path), {
          ...{ method, dispatcher: agent, headers, signal: ending },
          ...(body !== undefined && { body }),
        });
        await answer.body.dump();
      } catch {
        await stage.caller.pause();
      }
    }
  };
  await Promise.all(Array.from({ length: connections }, (_, first) => work(first)));
  await agent.destroy();
}

/** Asks for pages one after the other and reads none. */
async function unread(stage: Deployment, { apiKey }: RegisteredPartner, ending: AbortSignal): Promise<void> {
  const { hostname, port } = new URL(urlOf(stage, "/"));
  const head = ["GET /v1/notifications?limit=500 HTTP/1.1", `Host: ${hostname}`, `Authorization: Bearer ${apiKey}`];
  const asked = `${head.join("\r\n")}\r\n\r\n`;
  while (!ending.aborted) {
    const socket = connect(Number(port), hostname).pause();
    socket.once("connect", () => socket.write(asked.repeat(pagesUnread)));
    addAbortSignal(ending, socket);
    await finished(socket).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, reconnectMs));
  }
}

function urlOf({ instances }: Deployment, path: string): string {
  const [instance] = instances;
  if (instance === undefined) throw new Error("There is no instance.");
  return instance.urlOf(path);
}
