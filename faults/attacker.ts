import { connect } from "node:net";
import { addAbortSignal } from "node:stream";
import { finished } from "node:stream/promises";
import { setTimeout as pause } from "node:timers/promises";
import { Agent, request } from "undici";
import { answer } from "../bench/processes/channel.ts";

/** A partner at its worst, with one instance. */
interface Attacker {
  readonly url: string;
  readonly apiKey: string;
}

/** Resolves when it has ended, after the signal. */
type Attack = (attacker: Attacker, ending: AbortSignal) => Promise<unknown>;

const connections = 16;
const bodyBytes = 64_000;
const pauseMs = 100;
const reconnectMs = 20;
const pagesUnread = 8;

/** Bodies of the largest size, each the dearest to read or to refuse that was found. */
const bodies: readonly string[] = [
  `{"\\u0061":[${"1,".repeat(bodyBytes / 2 - 20)}1]}`,
  JSON.stringify({ command: "SALE", extraData: "4\u200b".repeat(bodyBytes / 4 - 20) }),
  JSON.stringify({ command: "SALE", billId: "cvv=12 ".repeat(bodyBytes / 7 - 20) }),
  JSON.stringify(Object.fromEntries(Array.from({ length: 190 }, (_, at) => [`k${at}${"x".repeat(300)}`, ""]))),
];

const attacks = {
  "invalid-bodies": (attacker, ending) =>
    called(attacker, ending, (turn) => ({
      method: "POST",
      path: "/v1/commands",
      body: bodies[turn % bodies.length] ?? "",
    })),
  "pages-of-500": (attacker, ending) =>
    called(attacker, ending, () => ({ method: "GET", path: "/v1/notifications?limit=500" })),
  "unread-answers": (attacker, ending) =>
    Promise.all(Array.from({ length: connections }, () => unread(attacker, ending))),
} as const satisfies Readonly<Record<string, Attack>>;

export type AttackName = keyof typeof attacks;
export const attackNames = Object.keys(attacks) as readonly AttackName[];

export type AttackerMethods = ReturnType<typeof attackerMethods>;

/** In the process of an attacker: one attack at a time. */
function attackerMethods() {
  let ending = new AbortController();
  let attacking: Promise<unknown> = Promise.resolve();
  return {
    begin({ name, ...attacker }: Attacker & { readonly name: AttackName }): void {
      ending = new AbortController();
      attacking = attacks[name](attacker, ending.signal);
    },
    async end(_: undefined): Promise<void> {
      ending.abort();
      await attacking;
    },
  };
}

/** The next request of each connection follows the answer to the one before. */
async function called(
  { url, apiKey }: Attacker,
  ending: AbortSignal,
  next: (turn: number) => { readonly method: "GET" | "POST"; readonly path: string; readonly body?: string },
): Promise<void> {
  const agent = new Agent({ connections });
  const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
  const work = async (first: number) => {
    for (let turn = first; !ending.aborted; turn += 1) {
      const { path, ...call } = next(turn);
      try {
        const { body } = await request(new URL(path, url), { ...call, dispatcher: agent, headers, signal: ending });
        await body.dump();
      } catch {
        await pause(pauseMs);
      }
    }
  };
  await Promise.all(Array.from({ length: connections }, (_, first) => work(first)));
  await agent.destroy();
}

/** Asks for pages one after the other and reads none. */
async function unread({ url, apiKey }: Attacker, ending: AbortSignal): Promise<void> {
  const { hostname, port } = new URL(url);
  const head = ["GET /v1/notifications?limit=500 HTTP/1.1", `Host: ${hostname}`, `Authorization: Bearer ${apiKey}`];
  const asked = `${head.join("\r\n")}\r\n\r\n`;
  while (!ending.aborted) {
    const socket = connect(Number(port), hostname).pause();
    socket.once("connect", () => socket.write(asked.repeat(pagesUnread)));
    addAbortSignal(ending, socket);
    await finished(socket).catch(() => undefined);
    await pause(reconnectMs);
  }
}

if (import.meta.main) answer(process, attackerMethods());
