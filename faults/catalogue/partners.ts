import type { Fault } from "../fault.ts";
import type { Mood } from "../receiver.ts";

const moods: readonly Exclude<Mood, "well">[] = ["busy", "silent", "broken", "late", "forgetful"];
const flapMs = 700;

/** Partners' servers that fail in each way, and that come and go. */
export const partnerFaults: readonly Fault[] = [
  ...moods.map(
    (mood): Fault => ({
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
