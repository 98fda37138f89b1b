import { parentPort, workerData } from "node:worker_threads";
import type { LeaseId } from "../../ids.ts";
import type { FromWorker, ToWorker } from "./messages.ts";

/** Controls the thread in a test: it echoes the details as log lines. */
export interface ThreadData {
  /** Its first lease; each later thread uses the next one. */
  readonly leases: readonly LeaseId[];
  /** Incremented by each thread that starts. */
  readonly starts: SharedArrayBuffer;
}

// Does what the hints of the test say, and echoes every message.
if (parentPort !== null) {
  const main = parentPort;
  const { leases, starts } = workerData as ThreadData;
  const nth = Atomics.add(new Int32Array(starts), 0, 1);
  const idle = { bytes: 0, rows: 0, unrecorded: 0, busyMs: 0, sealingWaiting: 0 };
  const say = (more: Partial<FromWorker>) => {
    const taken = { taken: 0, takenBytes: 0, heard: 0 };
    const nothing = { ...taken, asks: [], behind: [], attempted: [], commits: [], parkedOverdue: 0 };
    main.postMessage({ ...nothing, log: [], ...more });
  };
  main.on("message", (message: ToWorker) => {
    say({ log: [{ level: "info", fields: { message }, message: "told" }] });
    for (const { partnerId, queue } of message.hints) {
      if (queue === "throw") throw new Error("broken on purpose");
      if (queue === "block") for (;;);
      if (queue === "behind") say({ behind: [[{ partnerId, queue: "" }, true]] });
      if (queue === "caught up") say({ behind: [[{ partnerId, queue: "" }, false]] });
      if (queue === "take one") say({ taken: 1, takenBytes: 2 });
      if (queue === "hold a lease") say({ status: { ...idle, leaseMs: 600_000 } });
      if (queue === "hear all") say({ heard: message.hints.length });
      if (queue === "ask") say({ asks: [[partnerId, false]] });
      if (queue === "ask again") say({ asks: [[partnerId, true]] });
    }
    if (message.stopWithinMs !== undefined) {
      say({ stopped: 3 });
      main.close();
    }
  });
  const all = Array.from({ length: 256 }, (_, shard) => shard);
  const leaseId = leases[nth];
  say({ shards: all, ...(leaseId !== undefined && { leaseId }) });
}
