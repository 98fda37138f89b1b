import type { InjectedFault } from "../fault.ts";
import { makeNewerTree } from "../newer-tree.ts";

/** Instance by instance, to a version with more migrations: old and new work side by side meanwhile. */
export const upgradeFaults: readonly InjectedFault[] = [
  {
    name: "rolling-upgrade",
    needs: "several instances",
    isQuick: true,
    async happen({ stage, over, last }) {
      const tree = await makeNewerTree(stage.folder, stage.nextVersion());
      for (const instance of stage.instances) {
        instance.useTree(tree);
        await instance.stop();
        await instance.start();
        await last(500, 3_000);
      }
      over();
      return { instances: 0, isPlanned: true };
    },
  },
];
