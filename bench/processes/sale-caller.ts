import { randomUUID } from "node:crypto";
import { Pool } from "undici";
import { poisson } from "../poisson.ts";
import { saleCommand } from "../sale.ts";
import { answer } from "./channel.ts";

export interface SaleLoop {
  readonly ratePerS: number;
  readonly durationMs: number;
  /** Terminals among which the Sales are spread. */
  readonly terminals: number;
}

export interface SaleLoopOutcome {
  /** Milliseconds since the loop began, in order. */
  readonly scheduledMs: Float64Array;
  /** From the scheduled moment to the whole answer. */
  readonly latencyMs: Float64Array;
  /** Median delay before a call left: this process's own share of the latency. */
  readonly lateMs: number;
}

/** The address to call. */
interface At {
  readonly url: string;
  readonly partners: readonly { readonly apiKey: string }[];
}

/** Connections to the service: more Sales than this are never on their way. */
const connections = 256;

/** Partners that sell: each POST /v1/commands leaves when its time has come, whatever became of those before. */
export function saleCallerMethods() {
  let at: At | undefined;
  let pool: Pool | undefined;

  async function sell(nth: number, terminals: number): Promise<void> {
    const partner = at?.partners[nth % at.partners.length];
    const tid = `L${String(nth % terminals).padStart(7, "0")}`;
    const answered = await pool?.request({
      path: "/v1/commands",
      method: "POST",
      headers: { authorization: `Bearer ${partner?.apiKey}`, "content-type": "application/json" },
      body: JSON.stringify(saleCommand(randomUUID(), tid)),
    });
    const text = await answered?.body.text();
    if (!text?.includes('"status":"SUCCESS"')) throw new Error(`A Sale was not approved: ${text?.slice(0, 300)}`);
  }

  return {
    aim(service: At): void {
      at = service;
      pool = new Pool(service.url, { connections, keepAliveTimeout: 60_000 });
    },

    async sellOpenLoop({ ratePerS, durationMs, terminals }: SaleLoop): Promise<SaleLoopOutcome> {
      const scheduledMs = poisson(ratePerS, durationMs);
      const latencyMs = new Float64Array(scheduledMs.length);
      const late = new Float64Array(scheduledMs.length);
      const calls: Promise<void>[] = [];
      const startMs = performance.now();
      for (let next = 0; next < scheduledMs.length; ) {
        const nowMs = performance.now() - startMs;
        for (let dueMs = scheduledMs[next]; dueMs !== undefined && dueMs <= nowMs; dueMs = scheduledMs[next]) {
          const [nth, scheduled] = [next, dueMs];
          late[nth] = nowMs - scheduled;
          const sold = sell(nth, terminals).then(() => {
            latencyMs[nth] = performance.now() - startMs - scheduled;
          });
          calls.push(sold);
          next += 1;
        }
        // Up to 2 ms late, which counts against the service; busy waiting would take a core from it.
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      await Promise.all(calls);
      return { scheduledMs, latencyMs, lateMs: late.sort()[late.length >> 1] ?? 0 };
    },
  };
}

if (import.meta.main) answer(process, saleCallerMethods());
