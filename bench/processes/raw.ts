import { randomUUID } from "node:crypto";
import { openCallback, saleIpn } from "../callback.ts";
import { type ContenderMethods, contenderMethods, producers } from "../contender.ts";
import { answer } from "./channel.ts";

/** The bare loop: sign, seal, POST, without a queue or a database. */
function rawMethods(process: NodeJS.Process): ContenderMethods {
  return contenderMethods(process, async ({ target, setting }, progress) => {
    const callback = openCallback(target, setting["connections"] ?? producers);
    return {
      batch: 1,
      async handOver() {
        const id = randomUUID();
        await callback.post(id, saleIpn(id));
        progress.add();
      },
      close: () => callback.close(),
    };
  });
}

if (import.meta.main) answer(process, rawMethods(process));
