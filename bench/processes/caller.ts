import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { Pool } from "undici";
import { saleCommand, saleCompletion } from "../callback.ts";
import { producers } from "../contender.ts";
import { drive, type Load, monotonicMs, type Schedule } from "../load.ts";
import { answer } from "./channel.ts";
import type { ServiceAt } from "./service.ts";

/** With a rate, it is that of completions or commands, and not of requests. */
export interface CallerRound extends Load {
  readonly what: "completions" | "commands";
  /** Completions in one request; 1 for commands. */
  readonly batch: number;
  readonly callers: number;
  /** The callback of completion n goes to <callbackBase>/n. Default: where its partner is registered. */
  readonly callbackBase?: string;
}

export interface CallerOutcome extends Schedule {
  /** Completions, or commands. */
  readonly count: number;
  /** When each call was answered, by its number: monotonic milliseconds of the machine. */
  readonly answeredMs: Float64Array;
}

/** Callers of the service over HTTP: the operator's switch, or partners. */
export function callerMethods() {
  let at: ServiceAt | undefined;
  let pool: Pool | undefined;

  /** Repeats what is answered 503, as every caller does: where the disk stalls for seconds, the service refuses. */
  async function call(path: string, token: string, body: unknown): Promise<string> {
    if (pool === undefined) throw new Error("Nobody said whom to call.");
    for (;;) {
      const answered = await pool.request({
        path,
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      const text = await answered.body.text();
      if (answered.statusCode === 200) return text;
      if (answered.statusCode !== 503)
        throw new Error(`${path} answered ${answered.statusCode}: ${text.slice(0, 300)}`);
      await pause(Number(answered.headers["retry-after"]) * 1_000);
    }
  }

  async function report(completions: readonly unknown[]): Promise<void> {
    const text = await call("/operator/v1/completions", at?.operatorToken ?? "", { completions });
    const accepted = text.split(/"result":"(?:accepted|duplicate)"/).length - 1;
    if (accepted !== completions.length)
      throw new Error(`Of ${completions.length} were accepted: ${text.slice(0, 300)}`);
  }

  async function command(apiKey: string, caller: number): Promise<void> {
    const tid = `T${String(caller).padStart(7, "0")}`;
    const text = await call("/v1/commands", apiKey, saleCommand(randomUUID(), tid));
    if (!text.includes('"status":"SUCCESS"')) throw new Error(`A Sale was not approved: ${text.slice(0, 300)}`);
  }

  return {
    aim(service: ServiceAt): void {
      at = service;
      pool = new Pool(service.url, { connections: producers, keepAliveTimeout: 60_000 });
    },

    async round({ what, batch, callers, callbackBase, ...load }: CallerRound): Promise<CallerOutcome> {
      const answeredMs: number[] = [];
      const ratePerS = load.ratePerS && load.ratePerS / batch;
      const schedule = await drive({ ...load, ratePerS }, callers, async (caller, index) => {
        const partner = at?.partners[(callbackBase === undefined ? caller : index) % at.partners.length];
        const completion = (_: unknown, nth: number) => ({
          ...saleCompletion(partner?.id ?? "", randomUUID()),
          ...(callbackBase !== undefined && { callBackUrl: `${callbackBase}/${index * batch + nth}` }),
        });
        if (what === "commands") await command(partner?.apiKey ?? "", caller);
        else await report(Array.from({ length: batch }, completion));
        answeredMs[index] = monotonicMs();
      });
      return { ...schedule, count: answeredMs.length * batch, answeredMs: Float64Array.from(answeredMs) };
    },
  };
}

if (import.meta.main) answer(process, callerMethods());
