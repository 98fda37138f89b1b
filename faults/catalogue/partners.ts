import type { InjectedFault } from "../fault.ts";
import type { ReceiverMode } from "../receiver.ts";

const moods: readonly Exclude<ReceiverMode, "well">[] = ["busy", "silent", "broken", "late", "forgetful"];
const flapMs = 700;

/** Partners' servers that fail in each way, and that come and go. */
export const partnerFaults: readonly InjectedFault[] = [
  ...moods.map(
    (mood): InjectedFault => ({
      name: `receivers-${mood}`,
      needs: "nothing",
      isQuick: false,
      async happen({ stage, random, over, last }) {
        const hit = random.shuffled(stage.partners).slice(0, Math.ceil(stage.partners.length / 2));
        for (const { index } of hit) stage.server.behave(index, mood);
        await last(2_000, 8_000);
        for (const { index } of hit) stage.server.behave(index, "well");
        over();
        return { instances: 0 };
      },
    }),
  ),
  {
    name: "receivers-flap",
    needs: "nothing",
    isQuick: true,
    async happen({ stage, random, over, last }) {
      const flapping = setInterval(() => {
        for (const { index } of stage.partners) stage.server.behave(index, random.pick([...moods, "well", "well"]));
      }, flapMs);
      await last(3_000, 9_000);
      clearInterval(flapping);
      for (const { index } of stage.partners) stage.server.behave(index, "well");
      over();
      return { instances: 0 };
    },
  },
];
