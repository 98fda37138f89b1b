import { randomUUID } from "node:crypto";
import { Pool } from "undici";
import { producers } from "../contender.ts";
import { drive, type Load } from "../load.ts";
import { poisson } from "../poisson.ts";
import { saleCommand, saleCompletion } from "../sale.ts";
import { answer } from "./channel.ts";
import type { ServiceAt } from "./service.ts";

/** With a rate, it is that of completions or commands, and not of requests. */
export interface CallerRound extends Load {
  readonly what: "completions" | "commands";
  /** Completions in one request; 1 for commands. */
  readonly batch: number;
  readonly callers: number;
}

export interface Burst extends Omit<CallerRound, keyof Load> {
  /** In all: as many as whole batches hold. */
  readonly completions: number;
  /** The callback of completion n goes to <callbackBase>/n. */
  readonly callbackBase: string;
}

export interface OpenLoop {
  readonly ratePerS: number;
  readonly durationMs: number;
  /** The callback of arrival n goes to <callbackBase>/n. */
  readonly callbackBase: string;
}

export interface ClosedLoop {
  readonly callers: number;
  readonly durationMs: number;
  /** The callback of call n goes to <callbackBase>/n. */
  readonly callbackBase: string;
}

export interface Trickle {
  readonly partnerId: string;
  readonly ratePerS: number;
  readonly durationMs: number;
}

/** Monotonic milliseconds of the machine. */
export interface OpenLoopOutcome {
  readonly scheduledMs: Float64Array;
  /** Median delay before a call left: this process's own share of the latency. */
  readonly lateMs: number;
}

/** Callers of the service over HTTP: the operator's switch, or partners. */
export function callerMethods(process: NodeJS.Process) {
  let at: ServiceAt | undefined;
  let pool: Pool | undefined;

  async function call(path: string, token: string, body: string): Promise<string> {
    if (pool === undefined) throw new Error("Nobody said whom to call.");
    const answered = await pool.request({
      path,
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body,
    });
    const text = await answered.body.text();
    if (answered.statusCode !== 200) throw new Error(`${path} answered ${answered.statusCode}: ${text.slice(0, 300)}`);
    return text;
  }

  async function report(completions: readonly unknown[]): Promise<void> {
    const text = await call("/operator/v1/completions", at?.operatorToken ?? "", JSON.stringify({ completions }));
    const accepted = text.split('"result":"accepted"').length - 1;
    if (accepted !== completions.length)
      throw new Error(`Of ${completions.length} were accepted: ${text.slice(0, 300)}`);
  }

  async function command(apiKey: string, caller: number): Promise<void> {
    const tid = `T${String(caller).padStart(7, "0")}`;
    const body = JSON.stringify(saleCommand(randomUUID(), tid));
    const text = await call("/v1/commands", apiKey, body);
    if (!text.includes('"status":"SUCCESS"')) throw new Error(`A Sale was not approved: ${text.slice(0, 300)}`);
  }

  return {
    aim(service: ServiceAt): void {
      at = service;
      pool = new Pool(service.url, { connections: producers, keepAliveTimeout: 60_000 });
    },

    /** @returns how many were taken */
    async round({ what, batch, callers, durationMs, ratePerS }: CallerRound): Promise<number> {
      let taken = 0;
      const load = { durationMs, ratePerS: ratePerS && ratePerS / batch };
      await drive(load, callers, async (caller) => {
        const partner = at?.partners[caller % at.partners.length];
        if (what === "commands") await command(partner?.apiKey ?? "", caller);
        else await report(Array.from({ length: batch }, () => saleCompletion(partner?.id ?? "", randomUUID())));
        taken += batch;
      });
      return taken;
    },

    /** @returns how many were taken */
    async burst({ completions, batch, callers, callbackBase }: Burst): Promise<number> {
      let called = 0;
      const run = async (_: unknown, index: number) => {
        const partnerId = at?.partners[index % at.partners.length]?.id ?? "";
        while (called + batch <= completions) {
          const first = called;
          called += batch;
          const urlOf = (nth: number) => `${callbackBase}/${first + nth}`;
          await report(
            Array.from({ length: batch }, (_, nth) => ({
              ...saleCompletion(partnerId, randomUUID()),
              callBackUrl: urlOf(nth),
            })),
          );
        }
      };
      await Promise.all(Array.from({ length: callers }, run));
      return called;
    },

    /** One partner's completions beside everything else, at a fixed rate; its callbacks go where it is registered. */
    async trickle({ partnerId, ratePerS, durationMs }: Trickle): Promise<void> {
      const calls: Promise<void>[] = [];
      const startedMs = performance.now();
      for (let called = 0; performance.now() - startedMs < durationMs; ) {
        const dueNow = Math.floor(((performance.now() - startedMs) / 1_000) * ratePerS);
        for (; called < dueNow; called += 1) calls.push(report([saleCompletion(partnerId, randomUUID())]));
        await new Promise((resolve) => setTimeout(resolve, 1_000 / ratePerS));
      }
      await Promise.all(calls);
    },

    /** Calls when the schedule says, whatever became of the calls before: a Poisson process. */
    async openLoop({ ratePerS, durationMs, callbackBase }: OpenLoop): Promise<OpenLoopOutcome> {
      const startMs = nowMs(process) + 50;
      const scheduledMs = poisson(ratePerS, durationMs).map((afterMs) => startMs + afterMs);
      const late = new Float64Array(scheduledMs.length);
      const calls: Promise<void>[] = [];
      for (let next = 0; next < scheduledMs.length; ) {
        const now = nowMs(process);
        for (let dueMs = scheduledMs[next]; dueMs !== undefined && dueMs <= now; dueMs = scheduledMs[next]) {
          const partnerId = at?.partners[next % at.partners.length]?.id ?? "";
          const completion = { ...saleCompletion(partnerId, randomUUID()), callBackUrl: `${callbackBase}/${next}` };
          late[next] = now - dueMs;
          calls.push(report([completion]));
          next += 1;
        }
        // Up to 2 ms late, which counts against the service; busy waiting would take a core from it.
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      await Promise.all(calls);
      return { scheduledMs, lateMs: late.sort()[late.length >> 1] ?? 0 };
    },

    /** Each caller calls again when it has its answer. @returns when each call was answered, by its number */
    async closedLoop({ callers, durationMs, callbackBase }: ClosedLoop): Promise<Float64Array> {
      const acceptedMs: number[] = [];
      let called = 0;
      await drive({ durationMs }, callers, async () => {
        const index = called;
        called += 1;
        const partnerId = at?.partners[index % at.partners.length]?.id ?? "";
        await report([{ ...saleCompletion(partnerId, randomUUID()), callBackUrl: `${callbackBase}/${index}` }]);
        acceptedMs[index] = nowMs(process);
      });
      return Float64Array.from(acceptedMs);
    },

    async close(): Promise<void> {
      await pool?.close();
    },
  };
}

function nowMs(process: NodeJS.Process): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

if (import.meta.main) answer(process, callerMethods(process));
