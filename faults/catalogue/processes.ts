import type { InjectedFault } from "../fault.ts";

/** An instance sends nothing more 5 s after its last answered beat; others own its partners within 9. */
const pastLeaseMs = 9_500;

/** Processes that die, stop and go on. */
export const processFaults: readonly InjectedFault[] = [
  {
    name: "kill-service",
    needs: "one instance",
    isQuick: false,
    async happen({ stage, random, over, last }) {
      const instance = random.pick(stage.instances);
      await instance.kill();
      await last(0, 3_000);
      // Until it runs again nobody could take over from it.
      await instance.start();
      over();
      return { instances: 1 };
    },
  },
  {
    name: "kill-one-of-several",
    needs: "several instances",
    isQuick: false,
    async happen({ stage, random, over, last }) {
      const instance = random.pick(stage.instances);
      await instance.kill();
      // The others must continue by themselves, so its return is not awaited.
      over();
      await last(2_000, 12_000);
      await instance.start();
      return { instances: 1 };
    },
  },
  {
    name: "kill-postgres",
    needs: "nothing",
    isQuick: false,
    async happen({ stage, over, last }) {
      await stage.primary.kill();
      await last(300, 6_000);
      await stage.primary.start();
      over();
      return { instances: stage.instances.length };
    },
  },
  {
    name: "kill-both",
    needs: "nothing",
    isQuick: true,
    async happen({ stage, over, last }) {
      await Promise.all([stage.primary.kill(), ...stage.instances.map((instance) => instance.kill())]);
      await last(0, 3_000);
      await stage.primary.start();
      await Promise.all(stage.instances.map((instance) => instance.start()));
      over();
      return { instances: stage.instances.length };
    },
  },
  {
    name: "rolling-restart",
    needs: "several instances",
    isQuick: true,
    async happen({ stage, over }) {
      for (const instance of stage.instances) {
        await instance.stop();
        await instance.start();
      }
      over();
      return { instances: 0, isPlanned: true };
    },
  },
  {
    name: "stop-service",
    needs: "one instance",
    isQuick: false,
    async happen({ stage, random, over, last }) {
      const instance = random.pick(stage.instances);
      instance.signal("SIGSTOP");
      await last(pastLeaseMs, pastLeaseMs + 4_000);
      instance.signal("SIGCONT");
      over();
      return { instances: 1 };
    },
  },
  {
    name: "stop-one-of-several",
    needs: "several instances",
    isQuick: true,
    async happen({ stage, random, over, last }) {
      const instance = random.pick(stage.instances);
      instance.signal("SIGSTOP");
      over();
      await last(pastLeaseMs, pastLeaseMs + 4_000);
      instance.signal("SIGCONT");
      return { instances: 1 };
    },
  },
];
