import { Client } from "pg";
import { attackNames } from "./attacker.ts";
import type { Deployment } from "./deployment.ts";
import { makeNewerTree, type ServiceInstance } from "./instance.ts";
import type { FaultyLink, LinkFault } from "./link.ts";
import type { NameServerFault } from "./name-server.ts";
import { slowdownBy } from "./neighbours.ts";
import type { SeededRandom } from "./random.ts";
import type { ReceiverMode } from "./receiver.ts";

/** The requirements of a fault on its deployment. */
export type Needs = "one instance" | "several instances" | "a standby" | "a small disk" | "Citus" | "nothing";

/** Deliveries that may be repeated because of it: those that these instances had in flight, and had not recorded. */
export interface FaultEffect {
  readonly instances: number;
  /** Instances were only stopped in order: no command may be declined because of it. */
  readonly isPlanned?: boolean;
  /** The slower Sales of a neighbour, where one partner was the fault. */
  readonly slowdown?: Slowdown;
}

/** How long each of a partner's Sales took, in milliseconds: without a fault and during it, in turns. */
export interface Slowdown {
  readonly quietMs: readonly number[];
  readonly duringMs: readonly number[];
}

export interface FaultContext {
  readonly stage: Deployment;
  readonly random: SeededRandom;
  /** The fault is over: from now on partners are waited for. Once, before `happen` resolves. */
  over(): void;
  /** Waits while it lasts; a short run uses the minimum. */
  last(leastMs: number, mostMs: number): Promise<void>;
}

/** A temporary fault of a stage under load. */
export interface InjectedFault {
  readonly name: string;
  readonly needs: Needs;
  /** Belongs to the short form. It leaves out kills, which test/faults has as tests of their own. */
  readonly isQuick: boolean;
  happen(context: FaultContext): Promise<FaultEffect>;
}

function fault(
  name: string,
  { needs = "nothing", isQuick = false }: Partial<Pick<InjectedFault, "needs" | "isQuick">>,
  happen: InjectedFault["happen"],
): InjectedFault {
  return { name, needs, isQuick, happen };
}

/** An instance sends nothing more 5 s after its last answered beat; others own its partners within 9. */
const pastLeaseMs = 9_500;

/** Every instance had deliveries in flight that may be repeated. */
const allInstances = ({ instances }: Deployment): FaultEffect => ({ instances: instances.length });

/** Processes that die, stop and continue. */
const processFaults: readonly InjectedFault[] = [
  fault("kill-service", { needs: "one instance" }, async ({ stage, random, over, last }) => {
    const instance = random.pick(stage.instances);
    await instance.kill();
    await last(0, 3_000);
    // Until it runs again nobody could take over from it.
    await instance.start();
    over();
    return { instances: 1 };
  }),
  fault("kill-one-of-several", { needs: "several instances" }, async ({ stage, random, over, last }) => {
    const instance = random.pick(stage.instances);
    await instance.kill();
    // The others must continue by themselves, so its return is not awaited.
    over();
    await last(2_000, 12_000);
    await instance.start();
    return { instances: 1 };
  }),
  fault("kill-postgres", {}, async ({ stage, over, last }) => {
    await stage.primary.kill();
    await last(300, 6_000);
    await stage.primary.start();
    over();
    return allInstances(stage);
  }),
  fault("kill-both", { isQuick: true }, async ({ stage, over, last }) => {
    await Promise.all([stage.primary.kill(), ...stage.instances.map((instance) => instance.kill())]);
    await last(0, 3_000);
    await stage.primary.start();
    await Promise.all(stage.instances.map((instance) => instance.start()));
    over();
    return allInstances(stage);
  }),
  fault("stop-service", { needs: "one instance" }, async ({ stage, random, over, last }) => {
    const instance = random.pick(stage.instances);
    instance.signal("SIGSTOP");
    await last(pastLeaseMs, pastLeaseMs + 4_000);
    instance.signal("SIGCONT");
    over();
    return { instances: 1 };
  }),
  fault("stop-one-of-several", { needs: "several instances", isQuick: true }, async ({ stage, random, over, last }) => {
    const instance = random.pick(stage.instances);
    instance.signal("SIGSTOP");
    over();
    await last(pastLeaseMs, pastLeaseMs + 4_000);
    instance.signal("SIGCONT");
    return { instances: 1 };
  }),
];

/** Instance by instance. */
const plannedFaults: readonly InjectedFault[] = [
  fault("rolling-restart", { needs: "several instances", isQuick: true }, async ({ stage, over }) => {
    await restartEach(stage, async () => undefined);
    over();
    return { instances: 0, isPlanned: true };
  }),
  // To a version with more migrations: old and new work side by side meanwhile.
  fault("rolling-upgrade", { needs: "several instances", isQuick: true }, async ({ stage, over, last }) => {
    const tree = await makeNewerTree(stage.folder, stage.nextVersion());
    for (const instance of stage.instances) instance.useTree(tree);
    await restartEach(stage, () => last(500, 3_000));
    over();
    return { instances: 0, isPlanned: true };
  }),
];

async function restartEach({ instances }: Deployment, after: (instance: ServiceInstance) => Promise<void>) {
  for (const instance of instances) {
    await instance.stop();
    await instance.start();
    await after(instance);
  }
}

/** Faults of connections, in one direction or both, between instances and database, and between those and partners. */
const networkFaults: readonly InjectedFault[] = [
  ...(["cut", "hold-requests", "hold-answers", "slow", "lossy"] as const).map((trouble) =>
    fault(`database-${trouble}`, { isQuick: trouble === "hold-answers" }, async (context) => {
      await disturb(context, context.stage.databaseLinks, trouble, [1_500, 8_000]);
      return allInstances(context.stage);
    }),
  ),
  ...(["cut", "refuse", "hold-requests", "hold-answers", "slow", "lossy"] as const).map((trouble) =>
    fault(`partners-${trouble}`, { isQuick: trouble === "lossy" }, async (context) => {
      await disturb(context, [context.random.pick(context.stage.partnerLinks)], trouble, [2_000, 9_000]);
      return { instances: 0 };
    }),
  ),
  fault("one-cut-off-past-its-lease", { needs: "several instances" }, async ({ stage, random, over, last }) => {
    const link = random.pick(stage.databaseLinks);
    await link.begin(random.pick(["hold-requests", "hold-answers", "cut"]));
    over();
    await last(pastLeaseMs, pastLeaseMs + 4_000);
    await link.end({ reset: random.next() < 0.5 });
    return { instances: 1 };
  }),
  ...(["unknown", "failing", "silent"] as const satisfies readonly NameServerFault[]).map((trouble) =>
    fault(`names-${trouble}`, { isQuick: trouble === "failing" }, async ({ stage, over, last }) => {
      stage.names.behave(trouble);
      // An established connection needs no name look-up.
      for (const link of stage.partnerLinks) link.cutAll();
      await last(2_000, 8_000);
      stage.names.behave(undefined);
      over();
      return { instances: 0 };
    }),
  ),
];

async function disturb(
  { random, over, last }: FaultContext,
  links: readonly FaultyLink[],
  trouble: LinkFault,
  [leastMs, mostMs]: readonly [number, number],
): Promise<void> {
  for (const link of links) await link.begin(trouble);
  await last(leastMs, mostMs);
  const reset = random.next() < 0.5;
  for (const link of links) await link.end({ reset });
  over();
}

/** Faults of a database that keeps running, or that another one takes over from. */
const databaseFaults: readonly InjectedFault[] = [
  fault("connection-slots-used-up", { isQuick: true }, async ({ stage, over, last }) => {
    const giveBack = await takeConnections(stage.primary);
    for (const link of stage.databaseLinks) link.cutAll();
    await last(2_000, 7_000);
    await giveBack();
    over();
    return allInstances(stage);
  }),
  fault("disk-full", { needs: "a small disk", isQuick: true }, async ({ stage, over, last }) => {
    await stage.disk?.fill();
    await last(3_000, 8_000);
    await stage.disk?.free();
    // PostgreSQL stops if its log has no space.
    if (!stage.primary.isRunning) await stage.primary.start();
    over();
    return allInstances(stage);
  }),
  fault("failover-to-the-standby", { needs: "a standby", isQuick: true }, async ({ stage, over }) => {
    await stage.cluster.failOver();
    stage.leadToPrimary();
    over();
    await stage.cluster.addStandby();
    return allInstances(stage);
  }),
];

const sessionsMax = 300;
const againMs = 20;

/** Occupies every connection of PostgreSQL, and each that becomes free. @returns what ends that */
async function takeConnections(server: Deployment["primary"]): Promise<() => Promise<void>> {
  const sessions: Client[] = [];
  const takeOne = async () => {
    if (sessions.length >= sessionsMax) return false;
    const session = new Client({ connectionString: server.url() });
    session.on("error", () => undefined);
    const isTaken = await session.connect().then(
      () => true,
      () => false,
    );
    if (isTaken) sessions.push(session);
    return isTaken;
  };
  while (await takeOne());
  let isTaking = true;
  const takeFreed = async () => {
    while (isTaking) if (!(await takeOne())) await new Promise((resolve) => setTimeout(resolve, againMs));
  };
  const taking = takeFreed();
  return async () => {
    isTaking = false;
    await taking;
    await Promise.all(sessions.map((session) => session.end().catch(() => undefined)));
  };
}

/** Faults of the nodes that have the homes, one or all of them, and of the network to them. */
const citusFaults: readonly InjectedFault[] = [
  citusFault("kill-worker", true, async ({ stage, random, over, last }) => {
    const worker = random.pick(stage.citus.workers);
    await worker.kill();
    await last(300, 8_000);
    await worker.start();
    over();
  }),
  citusFault("kill-every-node", true, async ({ stage, random, over, last }) => {
    const nodes = random.shuffled([stage.primary, ...stage.citus.workers]);
    await Promise.all(nodes.map((node) => node.kill()));
    await last(0, 3_000);
    for (const node of nodes) await node.start();
    over();
  }),
  citusFault("kill-worker-and-instance", true, async ({ stage, random, over, last }) => {
    const [worker, instance] = [random.pick(stage.citus.workers), random.pick(stage.instances)];
    await Promise.all([worker.kill(), instance.kill()]);
    await last(0, 5_000);
    await worker.start();
    over();
    await instance.start();
  }),
  ...(["cut", "hold-requests", "hold-answers", "lossy"] as const).map((trouble) =>
    citusFault(`worker-${trouble}`, trouble === "cut" || trouble === "hold-answers", (context) =>
      disturb(context, [context.random.pick(context.stage.citus.workerLinks)], trouble, [1_500, 8_000]),
    ),
  ),
];

function citusFault(name: string, isQuick: boolean, happen: (context: FaultContext) => Promise<void>): InjectedFault {
  return fault(name, { needs: "Citus", isQuick }, async (context) => {
    await happen(context);
    return allInstances(context.stage);
  });
}

const receiverModes: readonly Exclude<ReceiverMode, "well">[] = ["busy", "silent", "broken", "late", "forgetful"];
const flapMs = 700;

/** Partners' servers that fail in each way, and that come and go. */
const partnerFaults: readonly InjectedFault[] = [
  ...receiverModes.map((mode) =>
    fault(`receivers-${mode}`, {}, async ({ stage, random, over, last }) => {
      const half = random.shuffled(stage.partners).slice(0, Math.ceil(stage.partners.length / 2));
      for (const { index } of half) stage.server.behave(index, mode);
      await last(2_000, 8_000);
      for (const { index } of half) stage.server.behave(index, "well");
      over();
      return { instances: 0 };
    }),
  ),
  fault("receivers-flap", { isQuick: true }, async ({ stage, random, over, last }) => {
    const flapping = setInterval(() => {
      for (const { index } of stage.partners)
        stage.server.behave(index, random.pick([...receiverModes, "well", "well"]));
    }, flapMs);
    await last(3_000, 9_000);
    clearInterval(flapping);
    for (const { index } of stage.partners) stage.server.behave(index, "well");
    over();
    return { instances: 0 };
  }),
];

/** One partner does its worst. */
const neighbourFaults: readonly InjectedFault[] = attackNames.map((name) =>
  fault(`one-partner-${name}`, { needs: "one instance" }, async ({ stage, over, last }) => {
    const slowdown = await slowdownBy(name, stage, last);
    over();
    return { instances: 0, slowdown };
  }),
);

/** Every fault that can be asked for by its name. */
export const catalogue: readonly InjectedFault[] = [
  ...processFaults,
  ...networkFaults,
  ...databaseFaults,
  ...citusFaults,
  ...partnerFaults,
  ...neighbourFaults,
  ...plannedFaults,
];
