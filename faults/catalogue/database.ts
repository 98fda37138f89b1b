import { Client } from "pg";
import type { Deployment } from "../deployment.ts";
import type { InjectedFault } from "../fault.ts";

const sessionsMax = 300;
const againMs = 20;

/** Faults of a database that keeps running. */
export const databaseFaults: readonly InjectedFault[] = [
  {
    name: "connection-slots-used-up",
    needs: "nothing",
    isQuick: true,
    async happen({ stage, over, last }) {
      const hog = new ConnectionHog(stage.primary);
      await hog.begin();
      for (const link of stage.databaseLinks) link.cutAll();
      await last(2_000, 7_000);
      await hog.end();
      over();
      return { instances: stage.instances.length };
    },
  },
  {
    name: "disk-full",
    needs: "a small disk",
    isQuick: true,
    async happen({ stage, over, last }) {
      await stage.disk?.fill();
      await last(3_000, 8_000);
      await stage.disk?.free();
      // PostgreSQL stops if its log has no space.
      if (!stage.primary.isRunning) await stage.primary.start();
      over();
      return { instances: stage.instances.length };
    },
  },
  {
    name: "failover-to-the-standby",
    needs: "a standby",
    isQuick: true,
    async happen({ stage, over }) {
      await stage.cluster.failOver();
      stage.leadToPrimary();
      over();
      await stage.cluster.addStandby();
      return { instances: stage.instances.length };
    },
  },
];

/** Occupies every connection of PostgreSQL, and each that becomes free. */
class ConnectionHog {
  readonly #server: Deployment["primary"];
  readonly #sessions: Client[] = [];
  #going = true;
  #taking: Promise<void> = Promise.resolve();

  constructor(server: Deployment["primary"]) {
    this.#server = server;
  }

  /** Resolves when there is none left. */
  async begin(): Promise<void> {
    while (await this.#takeOne());
    this.#taking = this.#takeOn();
  }

  async end(): Promise<void> {
    this.#going = false;
    await this.#taking;
    await Promise.all(this.#sessions.map((session) => session.end().catch(() => undefined)));
  }

  async #takeOn(): Promise<void> {
    while (this.#going) if (!(await this.#takeOne())) await new Promise((resolve) => setTimeout(resolve, againMs));
  }

  async #takeOne(): Promise<boolean> {
    if (this.#sessions.length >= sessionsMax) return false;
    const session = new Client({ connectionString: this.#server.url() });
    session.on("error", () => undefined);
    try {
      await session.connect();
      this.#sessions.push(session);
      return true;
    } catch {
      return false;
    }
  }
}
