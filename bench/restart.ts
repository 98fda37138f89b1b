import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { Pool } from "undici";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../packages/server/src/postgres/embedded.ts";
import type { BenchEnvironment, Cleanup } from "./environment.ts";
import { startProcess } from "./processes/channel.ts";
import type { partnerSitesMethods } from "./processes/partner-sites.ts";
import { saleCompletion } from "./sale.ts";
import { type BenchService, closeService, openService, partners } from "./service-rows.ts";

export interface RestartPlan {
  /** By HTTP, whatever becomes of them. */
  readonly completionsPerS: number;
  /** Duration of the steady rate before PostgreSQL is stopped, and of the measurement after it is back. */
  readonly beforeMs: number;
  readonly afterMs: number;
}

/** Fast: sessions are ended, then it stops. Immediate: it ends as in a crash, and recovers when it starts. */
const manners = ["fast", "immediate"] as const;

export interface RestartResult {
  readonly manner: (typeof manners)[number];
  /** From the order to stop until connections are accepted again. */
  readonly awayMs: number;
  readonly beforePerS: number;
  /** From the moment connections are accepted until nine tenths of the rate before are delivered again; NaN: never. */
  readonly fullSpeedAfterMs: number;
  readonly accepted: number;
  /** Calls that were answered otherwise than with 200, or not at all: each was repeated. */
  readonly refused: number;
  readonly lost: number;
  readonly duplicates: number;
}

const batchSize = 10;
const lookEveryMs = 50;
/** A rate is taken over so long. */
const windowMs = 500;
const deliveredWithinMs = 60_000;
/** The share of the requested rate, and of the rate before, that counts as steady. */
const steady = 0.9;
const steadyWithinMs = 300_000;

/** PostgreSQL is restarted while a switch reports at a steady rate, once in each manner. */
export async function measureRestart(
  around: BenchEnvironment,
  cleanup: Cleanup,
  plan: RestartPlan,
  note: (line: string) => void,
): Promise<readonly RestartResult[]> {
  const start = () =>
    startEmbeddedPostgres({
      home: join(around.folder, "restart-home"),
      systemDirectory: join(around.folder, "restart-system"),
      log: () => undefined,
    });
  let postgres: EmbeddedPostgres = await start();
  cleanup.add(() => postgres.stop());
  const sites = startProcess<ReturnType<typeof partnerSitesMethods>>(
    new URL("./processes/partner-sites.ts", import.meta.url),
  );
  cleanup.add(() => sites.stop());
  const url = await sites.ask("serve", around.certificate);
  const register = Array.from({ length: partners }, (_, index) => ({ callBackUrl: `${url}/${index}` }));
  const databaseUrl = postgres.superuserConnectionString;
  const service = await openService(around, cleanup, "restart", { register, databaseUrl, mayFail: true });

  const results: RestartResult[] = [];
  for (const manner of manners) {
    note(`restart: ${manner}`);
    const load = new SteadyLoad(service, plan.completionsPerS);
    const rate = new DeliveryRate(service);
    await rate.steady(plan.completionsPerS * steady, plan.beforeMs);
    const beforePerS = rate.perS(plan.beforeMs);
    const orderedMs = performance.now();
    if (manner === "immediate") {
      process.kill(postgres.pid, "SIGQUIT");
      await postgres.died;
    }
    await postgres.stop();
    postgres = await start();
    const backMs = performance.now();
    await pause(plan.afterMs);
    const { accepted, refused } = await load.stop();
    const fullSpeedAfterMs = await rate.reached(beforePerS * steady, backMs);
    const seen = await delivered(async () => sites.ask("seen", partners), accepted);
    results.push({
      manner,
      awayMs: backMs - orderedMs,
      beforePerS,
      fullSpeedAfterMs,
      accepted,
      refused,
      lost: accepted - seen.accepted,
      duplicates: seen.requests - seen.accepted,
    });
    await sites.ask("forget", undefined);
  }
  await closeService(service);
  await sites.stop();
  await postgres.stop();
  return results;
}

/** A switch: it reports in the rhythm that was asked for, and repeats what was not accepted. */
class SteadyLoad {
  readonly #service: BenchService;
  readonly #pool: Pool;
  readonly #running: Promise<void>;
  #going = true;
  #accepted = 0;
  #refused = 0;

  constructor(service: BenchService, completionsPerS: number) {
    this.#service = service;
    this.#pool = new Pool(service.at.url, { connections: 128, keepAliveTimeout: 60_000 });
    this.#running = this.#run(completionsPerS);
  }

  /** Resolves when all that was begun is accepted. */
  async stop(): Promise<{ readonly accepted: number; readonly refused: number }> {
    this.#going = false;
    await this.#running;
    await this.#pool.close();
    return { accepted: this.#accepted, refused: this.#refused };
  }

  async #run(completionsPerS: number): Promise<void> {
    const calls: Promise<void>[] = [];
    const startedMs = performance.now();
    while (this.#going) {
      const due = Math.floor((((performance.now() - startedMs) / 1_000) * completionsPerS) / batchSize);
      while (calls.length < due) calls.push(this.#report(calls.length));
      await pause(5);
    }
    await Promise.all(calls);
  }

  async #report(nth: number): Promise<void> {
    const { partners, operatorToken } = this.#service.at;
    const partnerId = partners[nth % partners.length]?.id ?? "";
    let left = Array.from({ length: batchSize }, () => saleCompletion(partnerId, randomUUID()));
    while (left.length > 0) {
      const results = await this.#call(operatorToken, JSON.stringify({ completions: left }));
      const taken = results.map(({ result }) => result === "accepted" || result === "duplicate");
      this.#accepted += taken.filter(Boolean).length;
      left = left.filter((_, index) => taken[index] !== true);
      if (left.length === 0) return;
      this.#refused += 1;
      await pause(100);
    }
  }

  /** @returns nothing where it was not answered with 200 */
  async #call(token: string, body: string): Promise<readonly { readonly result: string }[]> {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    try {
      const answer = await this.#pool.request({ path: "/operator/v1/completions", method: "POST", headers, body });
      const text = await answer.body.text();
      return answer.statusCode === 200 ? (JSON.parse(text) as { results: { result: string }[] }).results : [];
    } catch {
      return [];
    }
  }
}

/** The cumulative deliveries over time, sampled twenty times a second. */
class DeliveryRate {
  readonly #samples: { readonly atMs: number; readonly attempts: number }[] = [];
  readonly #running: Promise<void>;
  #going = true;

  constructor(service: BenchService) {
    this.#running = (async () => {
      while (this.#going) {
        const { attempts } = await service.process.ask("standing", undefined);
        this.#samples.push({ atMs: performance.now(), attempts });
        await pause(lookEveryMs);
      }
    })();
  }

  /** Resolves when so many a second were delivered for `overMs`. */
  async steady(perS: number, overMs: number): Promise<void> {
    const startedMs = performance.now();
    for (;;) {
      const elapsedMs = performance.now() - startedMs;
      if (elapsedMs >= overMs && this.perS(overMs) >= perS) return;
      if (elapsedMs > steadyWithinMs) throw new Error(`Restart: ${perS} a second are too many for this machine now.`);
      await pause(lookEveryMs);
    }
  }

  /** The rate of the last `overMs`. */
  perS(overMs: number): number {
    const last = this.#samples.at(-1);
    const first = this.#samples.find(({ atMs }) => last !== undefined && atMs >= last.atMs - overMs);
    return first === undefined || last === undefined ? Number.NaN : rateOf(first, last);
  }

  /** The time from `sinceMs` until the rate was first this high. Ends the sampling. */
  async reached(perS: number, sinceMs: number): Promise<number> {
    this.#going = false;
    await this.#running;
    for (const [index, last] of this.#samples.entries()) {
      const first = this.#samples.slice(0, index).findLast(({ atMs }) => atMs <= last.atMs - windowMs);
      if (first !== undefined && first.atMs >= sinceMs - windowMs && last.atMs >= sinceMs) {
        if (rateOf(first, last) >= perS) return Math.max(0, last.atMs - sinceMs);
      }
    }
    return Number.NaN;
  }
}

interface Sample {
  readonly atMs: number;
  readonly attempts: number;
}

function rateOf(first: Sample, last: Sample): number {
  return ((last.attempts - first.attempts) / (last.atMs - first.atMs)) * 1_000;
}

interface Counted {
  readonly accepted: number;
  readonly requests: number;
}

/** Waits until as many different ones have come as were accepted, and counts what came. */
async function delivered(seen: () => Promise<readonly Counted[]>, accepted: number): Promise<Counted> {
  const deadlineMs = performance.now() + deliveredWithinMs;
  for (;;) {
    const sites = await seen();
    const sum = (of: keyof Counted) => sites.reduce((total, site) => total + site[of], 0);
    const counted = { accepted: sum("accepted"), requests: sum("requests") };
    if (counted.accepted >= accepted || performance.now() > deadlineMs) return counted;
    await pause(lookEveryMs);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
