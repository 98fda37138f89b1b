import { describe, expect, it } from "vitest";
import { Misused } from "../errors/misused.ts";
import { deduplicate, type OnceIpn } from "../receiver/deduplicate.ts";
import type { ChainOrder } from "../receiver/order.ts";
import type { ReceivedIpn } from "../receiver/receiver.ts";
import { sampleIpn, sampleKeys } from "../testing.ts";
import type { SeenStore, SqlStore } from "./store.ts";

/** The store under test, and how to open and crash it. */
export interface StoreUnderTest<Tx> {
  /** Opens the store for one process: new for each test, on the same data. */
  open(): Promise<SeenStore<Tx>> | SeenStore<Tx>;
  /** A write in the same transaction, and whether it persisted. Left out for a store without transactions. */
  readonly own?: { write(tx: Tx, id: string): unknown; written(id: string): Promise<boolean> | boolean };
  /**
   * Ends the store's process, or its connection, in the middle of a function that was given this IPN. Resolves once
   * everything it held may be acquired again.
   */
  readonly crashWhileProcessing?: (received: ReceivedIpn) => Promise<void>;
}

/** A function that runs until `end` is called. */
function held(): { run: () => Promise<void>; started: Promise<void>; end(): void } {
  const start = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const run = () => {
    start.resolve();
    return end.promise;
  };
  return { run, started: start.promise, end: end.resolve };
}

/** The tests of every store. */
export function storeConformance<Tx>(subject: StoreUnderTest<Tx>): void {
  const newSale = () => sampleIpn({ ipn: { invoiceNo: String(Math.floor(Math.random() * 1e15)) } });
  const onceWith = async (onIpn: OnceIpn<Tx>) => deduplicate(await subject.open())(onIpn);

  /**
   * Processes other chains one after the other. Once they are done, everything begun before could have been done too.
   */
  async function othersHadTheirTurn(): Promise<void> {
    for (let others = 0; others < 5; others += 1) {
      await (await onceWith(() => undefined))(newSale().received).catch(() => undefined);
    }
  }

  it("runs the function for the first delivery, and for no later one, in any process", async () => {
    const { received } = newSale();
    const runs: string[] = [];
    const once = await onceWith(({ ipn }) => runs.push(ipn.id));
    const elsewhere = await onceWith(() => runs.push("elsewhere"));
    expect(await once(received)).toBe("processed");
    expect(await once(received)).toBe("duplicate");
    expect(await elsewhere({ ...received, attempt: 2 })).toBe("duplicate");
    expect(runs).toEqual([received.ipn.id]);
  });

  it("runs it once for concurrent duplicates in two processes", async () => {
    const { received } = newSale();
    let runs = 0;
    const onIpn = async () => {
      await new Promise(setImmediate);
      runs += 1;
    };
    const processes = [await onceWith(onIpn), await onceWith(onIpn)];
    const deliveries = Array.from({ length: 20 }, (_, index) => processes[index % 2]?.(received));
    const outcomes = await Promise.allSettled(deliveries);
    expect(runs).toBe(1);
    const accepted = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    expect(accepted.filter((outcome) => outcome === "processed")).toHaveLength(1);
    // A refused delivery is delivered again.
    expect(await processes[1]?.(received)).toBe("duplicate");
    expect(runs).toBe(1);
  });

  it("never reports a duplicate as processed while the first is still running", async () => {
    const { received } = newSale();
    const first = held();
    const processing = (await onceWith(first.run))(received);
    await first.started;
    let answered: string | undefined;
    const elsewhere = (await onceWith(() => undefined))(received).then(
      (outcome) => (answered = outcome),
      () => "delivered again",
    );
    await othersHadTheirTurn();
    expect(answered).toBeUndefined();
    first.end();
    expect(await processing).toBe("processed");
    expect(["duplicate", "delivered again"]).toContain(await elsewhere);
  });

  it.each([
    ["throws", () => expect.fail("no stock")],
    ["rejects", () => Promise.reject(new Error("no stock"))],
  ])("forgets an IPN whose function %s, passes the error on, and runs the next delivery", async (_, fails) => {
    const { received } = newSale();
    let outcome: () => unknown = fails;
    const once = await onceWith(() => outcome());
    await expect(once(received)).rejects.toThrow("no stock");
    outcome = () => undefined;
    expect(await once(received)).toBe("processed");
    expect(await once(received)).toBe("duplicate");
  });

  it("distinguishes IPNs, whatever characters their ids contain", async () => {
    const ids = ["a", "A", "a ", "a'; --", "{a}", "ä\u0001"].map((id) => `${id}-${Math.random()}`);
    const once = await onceWith(() => undefined);
    for (const id of ids) {
      const { received } = sampleIpn({ ipn: { id, invoiceNo: "" } });
      expect(await once(received), id).toBe("processed");
      expect(await once(received), id).toBe("duplicate");
    }
  });

  describe("for IPNs of one chain", () => {
    it("reports the other known IPNs, and that a Sale after its Void is stale", async () => {
      const sale = newSale();
      const saleVoid = sampleIpn({ command: "VOID", of: sale });
      const orders: { stale: boolean; known: string[] }[] = [];
      const once = await onceWith((_, __, { stale, known }) =>
        orders.push({ stale, known: known.map(({ id }) => id) }),
      );
      await once(saleVoid.received);
      await once(sale.received);
      expect(orders).toEqual([
        { stale: false, known: [] },
        { stale: true, known: [saleVoid.received.ipn.id] },
      ]);
    });

    it("lets one of two concurrent IPNs know of the other", async () => {
      const sale = newSale();
      const saleVoid = sampleIpn({ command: "VOID", of: sale });
      const known: number[] = [];
      const first = held();
      const processing = (await onceWith(first.run))(sale.received);
      await first.started;
      const once = await onceWith((_, __, order) => known.push(order.known.length));
      const second = once(saleVoid.received).catch(() => "delivered again");
      await othersHadTheirTurn();
      expect(known).toEqual([]);
      first.end();
      await processing;
      if ((await second) === "delivered again") await once(saleVoid.received);
      expect(known).toEqual([1]);
    });

    it("records nothing if the function threw", async () => {
      const sale = newSale();
      const saleVoid = sampleIpn({ command: "VOID", of: sale });
      await expect((await onceWith(() => Promise.reject(new Error("x"))))(saleVoid.received)).rejects.toThrow("x");
      const orders: boolean[] = [];
      await (await onceWith((_, __, { stale }) => orders.push(stale)))(sale.received);
      expect(orders).toEqual([false]);
    });
  });

  describe.each(["extended", "specification"] as const)("for a Complete at another terminal, fields: %s", (fields) => {
    const made = () => {
      const number = () => String(Math.floor(Math.random() * 1e15));
      const keys = { ...sampleKeys, fields };
      const preAuth = sampleIpn({ command: "PREAUTH", ipn: { tid: "T1", invoiceNo: number(), batchNo: "" } }, keys);
      const elsewhere = { tid: "T2", invoiceNo: number() };
      const complete = sampleIpn({ command: "PREAUTH_COMPLETE", of: preAuth, ipn: elsewhere }, keys);
      const completeVoid = sampleIpn({ command: "VOID", of: complete }, keys);
      const all = { preAuth, complete, completeVoid };
      const commands = { preAuth: "PREAUTH", complete: "PREAUTH_COMPLETE", completeVoid: "VOID" } as const;
      const originals = { preAuth: undefined, complete: preAuth, completeVoid: complete };
      // An extended IPN says it itself; otherwise it is added, from what was sent.
      const received = (name: keyof typeof all): ReceivedIpn =>
        fields === "extended"
          ? all[name].received
          : {
              ...all[name].received,
              command: commands[name],
              originalTransactionId: originals[name]?.received.ipn.id,
            };
      return { preAuth: received("preAuth"), complete: received("complete"), completeVoid: received("completeVoid") };
    };

    it.each([
      ["preAuth", "complete", "completeVoid"],
      ["preAuth", "completeVoid", "complete"],
      ["complete", "preAuth", "completeVoid"],
      ["complete", "completeVoid", "preAuth"],
      ["completeVoid", "preAuth", "complete"],
      ["completeVoid", "complete", "preAuth"],
    ] as const)("reports PreAuth, Complete and its Void as one chain: %s, %s, %s", async (...arrival) => {
      const ipns = made();
      const orders: ChainOrder[] = [];
      const once = await onceWith((_, __, order) => orders.push(order));
      for (const name of arrival) expect(await once(ipns[name])).toBe("processed");
      const last = orders.at(-1);
      expect(last?.latest.id).toBe(ipns.completeVoid.ipn.id);
      expect(last?.stale).toBe(arrival[2] !== "completeVoid");
      expect(last?.known.map(({ id }) => id).sort()).toEqual(
        [ipns[arrival[0]], ipns[arrival[1]]].map(({ ipn }) => ipn.id).sort(),
      );
    });

    it("lets one of a concurrent PreAuth and Complete know of the other", async () => {
      const { preAuth, complete } = made();
      const known: string[][] = [];
      const first = held();
      const processing = (await onceWith(first.run))(preAuth);
      await first.started;
      const once = await onceWith((_, __, order) => known.push(order.known.map(({ id }) => id)));
      const second = once(complete).catch(() => "delivered again");
      await othersHadTheirTurn();
      expect(known).toEqual([]);
      first.end();
      await processing;
      if ((await second) === "delivered again") await once(complete);
      expect(known).toEqual([[preAuth.ipn.id]]);
    });
  });

  const { own, crashWhileProcessing } = subject;
  if (own !== undefined) {
    it("commits the function's own write with the IPN, and rolls it back if the function throws", async () => {
      const { received } = newSale();
      const id = received.ipn.id;
      const failing = await onceWith(async (_, tx) => {
        await own.write(tx, id);
        throw new Error("after the write");
      });
      await expect(failing(received)).rejects.toThrow("after the write");
      expect(await own.written(id)).toBe(false);
      expect(await (await onceWith((_, tx) => own.write(tx, id)))(received)).toBe("processed");
      expect(await own.written(id)).toBe(true);
    });
  }
  if (crashWhileProcessing !== undefined) {
    it("runs the function again after a crash in the middle of it", async () => {
      const { received } = newSale();
      await crashWhileProcessing(received);
      if (own !== undefined) expect(await own.written(received.ipn.id)).toBe(false);
      let runs = 0;
      expect(await (await onceWith(() => (runs += 1)))(received)).toBe("processed");
      expect(runs).toBe(1);
    });
  }
}

/**
 * The test of every store with a table.
 *
 * @param open opens a store whose table is called `missing`, and does not exist
 * @param fails queries a table of yours, `nowhere`, that does not exist
 */
export function tableConformance<Tx>(open: () => SqlStore<Tx>, fails: (tx: Tx) => unknown): void {
  it("reports that its table is missing, and how to create it; other errors are unchanged", async () => {
    const store = open();
    const { received } = sampleIpn();
    for (const fail of [() => deduplicate(store)(() => undefined)(received), () => store.forget()]) {
      const error = await (fail() as Promise<unknown>).catch((one: unknown) => one);
      expect(error).toBeInstanceOf(Misused);
      expect(error).toMatchObject({
        message: expect.stringMatching(/^The table missing is not in this database\. Call the store's createTable\(\)/),
        cause: { message: expect.stringContaining("missing") },
      });
    }
    await store.createTable();
    const failing = deduplicate(store)((_, tx) => fails(tx));
    await expect(failing(received)).rejects.toThrow(/nowhere/);
    await expect(failing(received)).rejects.not.toThrow(Misused);
    expect(await deduplicate(store)(() => undefined)(received)).toBe("processed");
  });
}
