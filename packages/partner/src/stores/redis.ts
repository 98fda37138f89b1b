import { randomUUID } from "node:crypto";
import { Misused, PaybellError } from "../errors/misused.ts";
import { linksOf } from "./chains.ts";
import { checkedDays, type KnownIpn, linkedChains, linkTo, retentionDaysDefault, type SeenStore } from "./store.ts";

/** The part of an `ioredis` or a `redis` (node-redis) client that is used. */
export type RedisClient =
  | { call(command: string, ...args: string[]): Promise<unknown> }
  | { sendCommand(args: string[]): Promise<unknown> };

export interface RedisStoreOptions {
  /** The prefix of every key; default paybell:ipn: */
  readonly prefix?: string;
  /** The time for which the IPN of a crashed process stays claimed. Your function must take less. Default 60,000. */
  readonly leaseMs?: number;
  /** A chain is forgotten after this many days without another IPN; default 100, at least 7. */
  readonly retentionDays?: number;
}

/** Another process is processing this IPN, or another one of its chain: the service delivers again. */
export class IpnInProgress extends PaybellError {
  readonly code = "ipn_in_progress";
  readonly remedy = "Nothing, once: it comes again. Time and again: your function takes longer than leaseMs.";

  constructor(id: string) {
    super(`IPN ${id} or another one of its chain is being processed elsewhere; it will be delivered again.`);
  }

  override get name(): string {
    return "IpnInProgress";
  }
}

const dayMs = 86_400_000;

// KEYS: the chain's claim, the chain's IPNs. One chain is in one hash slot, and each script is atomic.
const claim = `if redis.call("HEXISTS", KEYS[2], ARGV[1]) == 1 then return "duplicate" end
if not redis.call("SET", KEYS[1], ARGV[2], "NX", "PX", ARGV[3]) then return "busy" end
return redis.call("HVALS", KEYS[2])`;
// It was processed, even if the lease expired in the meantime. Another process's claim is left unchanged.
const confirm = `redis.call("HSET", KEYS[2], ARGV[1], ARGV[3])
redis.call("PEXPIRE", KEYS[2], ARGV[4])
if redis.call("GET", KEYS[1]) == ARGV[2] then redis.call("DEL", KEYS[1]) end`;
const giveBack = `if redis.call("GET", KEYS[1]) == ARGV[1] then redis.call("DEL", KEYS[1]) end`;

/**
 * Records IPNs in Redis. Your own writes are elsewhere, so the two are not one transaction: an IPN is claimed, your
 * function runs, then the IPN is confirmed. A crash after your write and before the confirmation runs your function
 * again.
 */
export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): SeenStore<undefined> {
  const { prefix = "paybell:ipn:", leaseMs = 60_000, retentionDays = retentionDaysDefault } = options;
  const retentionMs = String(Math.round(checkedDays(retentionDays) * dayMs));
  if (!(leaseMs >= 1 && Number.isFinite(leaseMs)))
    throw new Misused("wrong_option", "leaseMs", { remedy: "It must be a number of at least 1." });

  const keyOf = (chain: string) => `${prefix}{${chain}}`;

  function run(script: string, chain: string, ...args: string[]): Promise<unknown> {
    const keys = [`${keyOf(chain)}:claim`, keyOf(chain)];
    return send(client, ["EVAL", script, "2", ...keys, ...args]);
  }

  return {
    async once(seen, runs) {
      const { id, chain, facts } = seen;
      const token = randomUUID();
      const claimed: string[] = [];
      /** What a chain has, once it is this call's. */
      const enter = async (one: string, field: string): Promise<string[] | "duplicate"> => {
        const found = await run(claim, one, field, token, String(Math.round(leaseMs)));
        if (found === "duplicate") return found;
        if (!Array.isArray(found)) throw new IpnInProgress(id);
        claimed.push(one);
        return found as string[];
      };
      const own = linkTo(seen);
      try {
        const found = await enter(chain, id);
        if (found === "duplicate") return found;
        const known = found.map((text) => JSON.parse(text) as KnownIpn);
        const links: string[] = [];
        // A link that a crash left is written again: no record has the token for its field.
        for (const link of linksOf(facts, known)) links.push(...(await enter(link, token)));
        for (const other of linkedChains(chain, links)) {
          const texts = (await send(client, ["HVALS", keyOf(other)])) as string[];
          known.push(...texts.map((text) => JSON.parse(text) as KnownIpn));
        }
        await runs(undefined, known);
      } catch (error) {
        // If Redis is unavailable too, the claims end with their lease.
        for (const one of claimed) await run(giveBack, one, token).catch(() => undefined);
        throw error;
      }
      const isOwn = new Set(linksOf(facts, []));
      for (const link of claimed.slice(1)) {
        if (isOwn.has(link)) await run(confirm, link, own.id, token, own.facts, retentionMs);
        else await run(giveBack, link, token);
      }
      await run(confirm, chain, id, token, JSON.stringify(facts), retentionMs);
      return "processed";
    },
  };
}

function send(client: RedisClient, [command = "", ...args]: string[]): Promise<unknown> {
  return "call" in client ? client.call(command, ...args) : client.sendCommand([command, ...args]);
}
