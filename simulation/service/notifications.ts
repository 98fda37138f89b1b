import type { PartnerId } from "../../packages/server/src/ids.ts";
import type { Session } from "../database/database.ts";
import type { World } from "../world.ts";
import type { Instance } from "./instance.ts";

/** NOTIFY of the database, to all processes. Any of them may be lost, late, or duplicated. */
export class SimulatedNotifications {
  readonly #world: World;
  readonly #instances: ReadonlySet<Instance>;
  lossChance = 0;
  lateChance = 0;

  constructor(world: World, instances: ReadonlySet<Instance>) {
    this.#world = world;
    this.#instances = instances;
  }

  /** Hints at what is due. */
  async announce(session: Session, payload: string): Promise<void> {
    await session.read("announce", () => this.#all(({ hints }) => hints.received(payload)));
  }

  partnerChanged(id: PartnerId): void {
    this.#all((instance) => instance.partnerChanged(id));
  }

  circuitsChanged(): void {
    this.#all(({ worker }) => worker.circuitsChanged());
  }

  shardsChanged(): void {
    this.#all(({ worker }) => worker.tick());
  }

  #all(work: (instance: Instance) => void): void {
    const { random, agenda } = this.#world;
    for (const instance of this.#instances) {
      const afterMs = this.#isLate() ? random.between(10, 5_000) : random.between(0.2, 2);
      if (this.lossChance > 0 && random.chance(this.lossChance)) continue;
      agenda.after(afterMs, () => instance.loop.enter(() => work(instance)));
      if (!this.#isLate()) continue;
      agenda.after(afterMs + random.between(0, 300), () => instance.loop.enter(() => work(instance)));
    }
  }

  #isLate(): boolean {
    return this.lateChance > 0 && this.#world.random.chance(this.lateChance);
  }
}
