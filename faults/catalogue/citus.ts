import type { InjectedFault } from "../fault.ts";
import type { LinkFault } from "../link.ts";

const troubles: readonly LinkFault[] = ["cut", "hold-requests", "hold-answers", "lossy"];

/** Faults of the nodes that have the homes, one or all of them, and of the network to them. */
export const citusFaults: readonly InjectedFault[] = [
  {
    name: "kill-worker",
    needs: "Citus",
    isQuick: true,
    async happen({ stage, random, over, last }) {
      const worker = random.pick(stage.citus.workers);
      await worker.kill();
      await last(300, 8_000);
      await worker.start();
      over();
      return { instances: stage.instances.length };
    },
  },
  {
    name: "kill-every-node",
    needs: "Citus",
    isQuick: true,
    async happen({ stage, random, over, last }) {
      const nodes = random.shuffled([stage.primary, ...stage.citus.workers]);
      await Promise.all(nodes.map((node) => node.kill()));
      await last(0, 3_000);
      for (const node of nodes) await node.start();
      over();
      return { instances: stage.instances.length };
    },
  },
  {
    name: "kill-worker-and-instance",
    needs: "Citus",
    isQuick: true,
    async happen({ stage, random, over, last }) {
      const [worker, instance] = [random.pick(stage.citus.workers), random.pick(stage.instances)];
      await Promise.all([worker.kill(), instance.kill()]);
      await last(0, 5_000);
      await worker.start();
      over();
      await instance.start();
      return { instances: stage.instances.length };
    },
  },
  ...troubles.map(
    (trouble): InjectedFault => ({
      name: `worker-${trouble}`,
      needs: "Citus",
      isQuick: trouble === "cut" || trouble === "hold-answers",
      async happen({ stage, random, over, last }) {
        const link = random.pick(stage.citus.workerLinks);
        await link.begin(trouble);
        await last(1_500, 8_000);
        await link.end({ reset: random.next() < 0.5 });
        over();
        return { instances: stage.instances.length };
      },
    }),
  ),
];
