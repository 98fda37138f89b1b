import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { reportedSale, sale } from "../support/commands.ts";
import type { Instance } from "../support/instance.ts";
import { callHttp, eventually, type HttpAnswer, type TestPartner } from "../support/service.ts";

/** A machine with other work takes minutes for what takes seconds; a notification that is lost never comes. */
const deliveredMs = 300_000;
const reportedSales = 5;
/** Between two rounds of a till or switch: while an instance is replaced, all of them together do tens. */
const pauseMs = 1_000;

/** The port of an instance. Another instance gets another one. */
interface Port {
  readonly instance: Instance;
  /** It is being replaced: a till sends to the other port what this one refuses or does not answer. */
  isDown: boolean;
}

type Fields = Readonly<Record<string, unknown>>;

/** Deliveries to a partner's server. */
interface Arrivals {
  /** The number of deliveries that were counted. */
  read: number;
  /** The place of the first delivery of each transaction's IPN. */
  readonly places: Map<string, number>;
  repeated: number;
}

/** Tills and switches that keep two instances busy. Each waits for the IPNs of what it did before it goes on. */
export class Load {
  readonly #ports: Port[];
  readonly #arrivals = new Map<TestPartner, Arrivals>();
  readonly #rounds: { count: number }[] = [];
  readonly #running: Promise<void>[] = [];
  readonly #chains: { readonly partner: TestPartner; readonly ids: readonly string[] }[] = [];
  #isOver = false;
  #failure: unknown;

  constructor(instances: readonly [Instance, Instance]) {
    this.#ports = instances.map((instance) => ({ instance, isDown: false }));
  }

  get partners(): readonly TestPartner[] {
    return [...this.#arrivals.keys()];
  }

  /** Transactions by chain, in the order in which their IPNs must come. */
  get chains(): readonly { readonly places: readonly (number | undefined)[] }[] {
    return this.#chains.map(({ partner, ids }) => ({ places: ids.map((id) => this.#read(partner).places.get(id)) }));
  }

  get repeated(): number {
    return this.partners.reduce((sum, partner) => sum + this.#read(partner).repeated, 0);
  }

  /** A till and a switch of a partner begin, at different ports. */
  begin(partner: TestPartner): void {
    const first = this.#arrivals.size;
    this.#arrivals.set(partner, { read: 0, places: new Map(), repeated: 0 });
    const tid = `T${String(first).padStart(7, "0")}`;
    this.#repeat(() => this.#sell(partner, first, tid));
    this.#repeat(() => this.#report(partner, first + 1));
  }

  /** Resolves when each till and switch has done this much more. */
  async goesOn(rounds = 3): Promise<void> {
    const before = this.#rounds.map(({ count }) => count);
    await eventually(
      "every till and switch to go on",
      async () => {
        if (this.#failure !== undefined) throw this.#failure;
        return before.every((count, at) => (this.#rounds[at]?.count ?? 0) >= count + rounds) || undefined;
      },
      deliveredMs,
    );
  }

  /** Stops the instance at a port and sends nothing there until the next one is ready. */
  async replace(at: number, start: () => Promise<Instance>): Promise<Instance> {
    const port = this.#at(at);
    port.isDown = true;
    port.instance.signal("SIGTERM");
    const code = await port.instance.exited;
    if (code !== 0) throw new Error(`the instance ended with ${code}:\n${port.instance.output()}`);
    const instance = await start();
    this.#ports[at] = { instance, isDown: false };
    return instance;
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#running);
    if (this.#failure !== undefined) throw this.#failure;
  }

  #repeat(round: () => Promise<void>): void {
    const rounds = { count: 0 };
    this.#rounds.push(rounds);
    const repeat = async () => {
      for (; !this.#isOver; rounds.count += 1) {
        await round();
        await pause(pauseMs);
      }
    };
    this.#running.push(
      repeat().catch((error: unknown) => {
        this.#failure ??= error;
        this.#isOver = true;
      }),
    );
  }

  async #sell(partner: TestPartner, at: number, tid: string): Promise<void> {
    const run = (command: Fields) =>
      this.#send(at, ({ baseUrl }) =>
        callHttp(baseUrl, "POST", "/v1/commands", { key: partner.secrets.apiKey, json: command }),
      );
    const sold = idOf(await run(sale({ tid })));
    // A command that the stopping instance still ran may have no result yet.
    await this.#delivered(partner, [sold]);
    const voided = idOf(await run({ command: "VOID", reqId: randomUUID(), transactionId: sold }));
    this.#chains.push({ partner, ids: [sold, voided] });
    await this.#delivered(partner, [voided]);
  }

  async #report(partner: TestPartner, at: number): Promise<void> {
    const sales = Array.from({ length: reportedSales }, () => reportedSale(partner.id));
    const voids = sales.map(({ externalId }) =>
      reportedSale(partner.id, { command: "VOID", originalExternalId: externalId }),
    );
    const completions = [...sales, ...voids];
    const answer = await this.#send(at, ({ operator }) =>
      operator("POST", "/operator/v1/completions", { completions }),
    );
    const results = answer.body["results"] as readonly { transactionId?: string }[];
    const ids = results.map(({ transactionId }) => transactionId ?? "");
    if (ids.includes("")) throw new Error(`a completion was refused: ${answer.text}`);
    for (const [index] of sales.entries())
      this.#chains.push({ partner, ids: [ids[index] ?? "", ids[index + reportedSales] ?? ""] });
    await this.#delivered(partner, ids);
  }

  /** Sends the same again to the other port if this one is down. @throws Error if an instance that is not refuses it */
  async #send(at: number, call: (instance: Instance) => Promise<HttpAnswer>): Promise<HttpAnswer> {
    for (;;) {
      const own = this.#at(at);
      const port = own.isDown ? this.#at(at + 1) : own;
      try {
        const answer = await call(port.instance);
        if (answer.status < 300) return answer;
        if (!port.isDown) throw new Error(`it was refused: ${answer.status} ${answer.text}`);
      } catch (error) {
        if (!(error instanceof TypeError && port.isDown)) throw error;
      }
    }
  }

  #at(at: number): Port {
    return this.#ports[at % this.#ports.length] as Port;
  }

  async #delivered(partner: TestPartner, ids: readonly string[]): Promise<void> {
    const all = () => ids.every((id) => this.#read(partner).places.has(id));
    await partner.server.until(all, deliveredMs);
  }

  #read(partner: TestPartner): Arrivals {
    const arrivals = this.#arrivals.get(partner) as Arrivals;
    const { deliveries } = partner.server;
    for (; arrivals.read < deliveries.length; arrivals.read += 1) {
      const { received, refused } = deliveries[arrivals.read] ?? {};
      if (received === undefined) throw refused ?? new Error("an IPN was not opened");
      if (arrivals.places.has(received.ipn.id)) arrivals.repeated += 1;
      else arrivals.places.set(received.ipn.id, arrivals.read);
    }
    return arrivals;
  }
}

function idOf({ body, text }: HttpAnswer): string {
  if (body["status"] === "ERROR") throw new Error(`it failed: ${text}`);
  return String(body["id"]);
}
