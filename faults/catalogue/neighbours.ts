import { connect, type Socket } from "node:net";
import { Agent, request } from "undici";
import { amountOf, merchantTransIdOf, reqIdOf } from "../command-id.ts";
import type { Deployment } from "../deployment.ts";
import type { InjectedFault, Slowdown } from "../fault.ts";
import type { RegisteredPartner } from "../partner.ts";

const connections = 16;
const saleEveryMs = 25;
const mid = "M00000000000003";
const bodyBytes = 64_000;
const reconnectMs = 20;
const pagesUnread = 8;

/** Bodies of the largest size, each the dearest to read or to refuse that was found. */
const bodies: readonly string[] = [
  `{"\\u0061":[${"1,".repeat(bodyBytes / 2 - 20)}1]}`,
  JSON.stringify({ command: "SALE", extraData: "4\u200b".repeat(bodyBytes / 4 - 20) }),
  JSON.stringify({ command: "SALE", billId: "cvv=12 ".repeat(bodyBytes / 7 - 20) }),
  JSON.stringify(Object.fromEntries(Array.from({ length: 190 }, (_, at) => [`k${at}${"x".repeat(300)}`, ""]))),
];

type Attack = (stage: Deployment, partner: RegisteredPartner, ending: AbortSignal) => Promise<unknown>;

const attacks: Readonly<Record<string, Attack>> = {
  "invalid bodies": (stage, partner, ending) =>
    called(stage, partner, ending, (turn) => ({
      method: "POST",
      path: "/v1/commands",
      body: bodies[turn % bodies.length] ?? "",
    })),
  "pages of 500": (stage, partner, ending) =>
    called(stage, partner, ending, () => ({ method: "GET", path: "/v1/notifications?limit=500" })),
  "unread answers": async (stage, partner, ending) => {
    await Promise.all(Array.from({ length: connections }, () => unread(stage, partner, ending)));
  },
};

/** One partner does its worst, while another one sends its Sales: how much longer do these take? */
export const neighbourFaults: readonly InjectedFault[] = Object.entries(attacks).map(([name, attack]) => ({
  name: `one-partner-${name.replaceAll(" ", "-")}`,
  needs: "one instance",
  isQuick: false,
  async happen({ stage, over, last }) {
    const [attacker, neighbour] = stage.partners;
    if (attacker === undefined || neighbour === undefined) throw new Error("There is no second partner.");
    const before = await salesDuring(stage, neighbour, last(2_000, 10_000));
    const ending = new AbortController();
    const attacking = attack(stage, attacker, ending.signal);
    const during = await salesDuring(stage, neighbour, last(3_000, 60_000));
    ending.abort();
    await attacking;
    over();
    return { instances: 0, slowdown: slowdownOf(before, during) };
  },
}));

function slowdownOf(before: readonly number[], during: readonly number[]): Slowdown {
  return { beforeMs: p99Of(before), duringMs: p99Of(during), sales: during.length };
}

function p99Of(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * 0.99) - 1)] ?? Number.POSITIVE_INFINITY;
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
    await endOf(socket, ending);
    await new Promise((resolve) => setTimeout(resolve, reconnectMs));
  }
}

function endOf(socket: Socket, ending: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const end = () => socket.destroy();
  ending.addEventListener("abort", end);
  socket.on("error", end).once("close", () => {
    ending.removeEventListener("abort", end);
    resolve();
  });
  return promise;
}

function urlOf({ instances }: Deployment, path: string): string {
  const [instance] = instances;
  if (instance === undefined) throw new Error("There is no instance.");
  return instance.urlOf(path);
}
