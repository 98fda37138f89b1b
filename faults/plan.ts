import { catalogue } from "./catalogue/catalogue.ts";
import type { DeploymentPlan } from "./deployment.ts";
import type { InjectedFault, Needs } from "./fault.ts";
import type { FaultOptions } from "./options.ts";
import type { SeededRandom } from "./random.ts";

/** A stage, and what happens on it, in order. */
export interface FaultSeries {
  readonly stage: DeploymentPlan;
  readonly faults: readonly InjectedFault[];
}

interface Kind {
  readonly meets: ReadonlySet<Needs>;
  readonly instances: number;
  readonly hasStandby: boolean;
  readonly isCitus?: boolean;
}

const kinds: readonly Kind[] = [
  { meets: new Set(["one instance", "a small disk", "nothing"]), instances: 1, hasStandby: false },
  { meets: new Set(["several instances", "a standby", "nothing"]), instances: 4, hasStandby: true },
];
const onCitus: Kind = {
  meets: new Set(["Citus", "several instances", "nothing"]),
  instances: 2,
  hasStandby: false,
  isCitus: true,
};

/** After this many faults a new stage begins, so that disk and memory of a long run stay bounded. */
const faultsOfStage = 24;
const partners = 8;
/** Each takes a second of two processors to start. */
const quickInstancesMax = 2;

/** The plan of faults and stages. Every fault that was asked for comes about as often as every other one. */
export function planOf(options: FaultOptions, random: SeededRandom): readonly FaultSeries[] {
  const wanted = catalogue.filter(({ name, isQuick }) => options.only?.includes(name) ?? (isQuick || !options.quick));
  const usable = kindsOf(options).filter((kind) => faultsOf(kind, wanted, options).length > 0);
  const decks = usable.map((kind) => new Deck(faultsOf(kind, wanted, options), random));
  const total = decks.reduce((sum, { size }) => sum + size, 0);
  const share = Math.ceil((options.faults ?? total) / usable.length);
  const acts: FaultSeries[] = [];
  let left = options.faults ?? total;
  for (let turn = 0; left > 0; turn += 1) {
    const at = turn % usable.length;
    const [kind, deck] = [usable[at], decks[at]];
    if (kind === undefined || deck === undefined) throw new Error("There is no fault to let happen.");
    const count = Math.min(left, options.faults === undefined ? deck.size : share, faultsOfStage);
    acts.push({ stage: stageOf(kind, options), faults: deck.draw(count) });
    left -= count;
  }
  return acts;
}

function kindsOf({ citus }: FaultOptions): readonly Kind[] {
  return citus ? [onCitus] : kinds;
}

function stageOf(
  { instances, hasStandby, isCitus = false }: Kind,
  { quick, serveArguments }: FaultOptions,
): DeploymentPlan {
  const count = quick ? Math.min(instances, quickInstancesMax) : instances;
  return { instances: count, hasStandby, isCitus, partners, serveArguments };
}

/** Whether a quick run plays the fault here: one that can happen anywhere belongs where there is the least to start. */
function belongsTo(kind: Kind, needs: Needs, options: FaultOptions): boolean {
  return needs === "nothing" ? kind === kindsOf(options)[0] : kind.meets.has(needs);
}

function faultsOf(kind: Kind, wanted: readonly InjectedFault[], options: FaultOptions): readonly InjectedFault[] {
  return wanted.filter(({ needs }) => (options.quick ? belongsTo(kind, needs, options) : kind.meets.has(needs)));
}

/** Draws without replacement, and shuffles again when all have been drawn. */
class Deck {
  readonly #all: readonly InjectedFault[];
  readonly #random: SeededRandom;
  #left: InjectedFault[] = [];

  constructor(all: readonly InjectedFault[], random: SeededRandom) {
    this.#all = all;
    this.#random = random;
  }

  get size(): number {
    return this.#all.length;
  }

  draw(count: number): InjectedFault[] {
    return Array.from({ length: count }, () => {
      if (this.#left.length === 0) this.#left = this.#random.shuffled(this.#all);
      const drawn = this.#left.pop();
      if (drawn === undefined) throw new Error("There is no fault to let happen.");
      return drawn;
    });
  }
}
