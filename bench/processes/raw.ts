import { randomUUID } from "node:crypto";
import { type Callback, openCallback } from "../callback.ts";
import { type ContenderMethods, producers } from "../contender.ts";
import { drive } from "../load.ts";
import { saleIpn } from "../sale.ts";
import { answer } from "./channel.ts";

/** The bare loop: sign, seal, POST, without a queue or a database. */
export function rawMethods(process: NodeJS.Process): ContenderMethods {
  let callback: Callback | undefined;
  return {
    async open({ target, setting }) {
      callback = openCallback(target, setting["connections"] ?? producers);
    },
    async round(load) {
      const startedMs = performance.now();
      const cpuStart = process.cpuUsage();
      let count = 0;
      await drive(load, producers, async () => {
        const id = randomUUID();
        await callback?.post(id, saleIpn(id));
        count += 1;
      });
      const { user, system } = process.cpuUsage(cpuStart);
      return { count, elapsedMs: performance.now() - startedMs, cpuMs: (user + system) / 1_000 };
    },
    async close() {
      await callback?.close();
    },
  };
}

if (import.meta.main) answer(process, rawMethods(process));
