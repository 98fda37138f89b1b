import type { FaultContext, FaultEffect, InjectedFault } from "../fault.ts";
import type { FaultyLink, LinkFault } from "../link.ts";
import type { NameServerFault } from "../name-server.ts";

const pastLeaseMs = 9_500;
const databaseTroubles: readonly LinkFault[] = ["cut", "hold-requests", "hold-answers", "slow", "lossy"];
const partnerTroubles: readonly LinkFault[] = ["cut", "refuse", "hold-requests", "hold-answers", "slow", "lossy"];
const quickTroubles: ReadonlySet<string> = new Set(["database-hold-answers", "partners-lossy"]);
const nameTroubles: readonly NameServerFault[] = ["unknown", "failing", "silent"];

/**
 * Faults of connections, in one direction or both, between instances and database, and between instances and partners.
 */
export const networkFaults: readonly InjectedFault[] = [
  ...databaseTroubles.map((trouble): InjectedFault => {
    const name = `database-${trouble}`;
    return {
      name,
      needs: "nothing",
      isQuick: quickTroubles.has(name),
      happen: (context) => trouble_(context, context.stage.databaseLinks, trouble, { leastMs: 1_500, mostMs: 8_000 }),
    };
  }),
  ...partnerTroubles.map((trouble): InjectedFault => {
    const name = `partners-${trouble}`;
    return {
      name,
      needs: "nothing",
      isQuick: quickTroubles.has(name),
      happen: (context) =>
        trouble_(context, [context.random.pick(context.stage.partnerLinks)], trouble, {
          leastMs: 2_000,
          mostMs: 9_000,
        }),
    };
  }),
  {
    name: "one-cut-off-past-its-lease",
    needs: "several instances",
    isQuick: false,
    async happen({ stage, random, over, last }) {
      const link = random.pick(stage.databaseLinks);
      await link.begin(random.pick(["hold-requests", "hold-answers", "cut"]));
      over();
      await last(pastLeaseMs, pastLeaseMs + 4_000);
      await link.end({ reset: random.next() < 0.5 });
      return { instances: 1 };
    },
  },
  ...nameTroubles.map(
    (trouble): InjectedFault => ({
      name: `names-${trouble}`,
      needs: "nothing",
      isQuick: trouble === "failing",
      async happen({ stage, over, last }) {
        stage.names.behave(trouble);
        // An established connection needs no name look-up.
        for (const link of stage.partnerLinks) link.cutAll();
        await last(2_000, 8_000);
        stage.names.behave(undefined);
        over();
        return { instances: 0 };
      },
    }),
  ),
];

async function trouble_(
  { stage, random, over, last }: FaultContext,
  links: readonly FaultyLink[],
  trouble: LinkFault,
  { leastMs, mostMs }: { readonly leastMs: number; readonly mostMs: number },
): Promise<FaultEffect> {
  for (const link of links) await link.begin(trouble);
  await last(leastMs, mostMs);
  const reset = random.next() < 0.5;
  for (const link of links) await link.end({ reset });
  over();
  return { instances: links === stage.databaseLinks ? stage.instances.length : 0 };
}
