import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Redis } from "ioredis";

export interface RedisServer {
  readonly socket: string;
  stop(): Promise<void>;
}

/** The remedy without one. */
export const redisMissing = "redis-server is not installed: apt-get install --no-install-recommends redis-server";

const askAgainMs = 20;

/**
 * Redis as one would run it for jobs that should not be lost: append-only file, flushed every second. (Each write
 * flushed would be the equal of our PostgreSQL; hardly anybody runs it so.)
 *
 * @returns undefined where redis-server is not installed
 */
export async function startRedis(folder: string): Promise<RedisServer | undefined> {
  const socket = join(folder, "redis.sock");
  const settings = ["--port 0", `--unixsocket ${socket}`, "--unixsocketperm 700", `--dir ${folder}`, "--save"];
  const durable = ["--appendonly yes", "--appendfsync everysec", "--maxmemory-policy noeviction", "--daemonize no"];
  const args = [...settings, ...durable].flatMap((setting) => setting.split(" "));
  args.splice(args.indexOf("--save") + 1, 0, "");
  // In a group of its own: Ctrl-C is ours to pass on, after its clients are gone.
  const child = spawn("redis-server", args, { stdio: "ignore", detached: true });
  try {
    await once(child, "spawn");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const exited = once(child, "exit");
  const client = new Redis({ path: socket, retryStrategy: () => askAgainMs, maxRetriesPerRequest: null });
  client.on("error", () => undefined);
  // Waits for the connection, and until what is on the disk is loaded.
  const answer = await Promise.race([client.ping(), exited]);
  client.disconnect();
  if (answer !== "PONG") throw new Error(`redis-server ended with ${child.exitCode}.`);
  return {
    socket,
    async stop() {
      child.kill();
      await exited;
    },
  };
}
