import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { NoAnswer } from "../../packages/server/src/acquirer/acquirer.ts";
import type { Iso8583Acquirer } from "../../packages/server/src/acquirer/iso8583/iso8583.ts";
import type { LinkEvent } from "../../packages/server/src/acquirer/iso8583/link/link.ts";
import { again, emptyTotals, Till } from "../../packages/server/src/acquirer/till.fixture.ts";
import { connected, profile } from "./acquirer.fixture.ts";
import { type AcquirerHost, needsHost, startHost } from "./host.ts";

const needed = needsHost();
const patient = { timeoutMs: 600_000, onLateAnswer: () => expect.fail("no late answer is due") };

describe("a host on jPOS that fails", needed, () => {
  let hosts: readonly AcquirerHost[] = [];
  let acquirer: Iso8583Acquirer | undefined;
  let events: LinkEvent[] = [];
  let waiting: { readonly kind: LinkEvent["kind"]; readonly resolve: () => void }[] = [];

  beforeAll(async () => {
    hosts = [await startHost(), await startHost()];
  });
  beforeEach(async () => {
    events = [];
    waiting = [];
    for (const host of hosts) await host.order("forget");
  });
  afterEach(() => acquirer?.close());
  afterAll(() => Promise.all(hosts.map((host) => host.stop())));

  const nth = (at: number) => hosts[at] as AcquirerHost;
  const happens = (kind: LinkEvent["kind"]) => new Promise<void>((resolve) => waiting.push({ kind, resolve }));

  async function open(echoEveryMs = 60_000): Promise<Iso8583Acquirer> {
    acquirer = await connected(
      hosts.map(({ port }) => port),
      {
        profile: { ...profile, timings: { ...profile.timings, networkTimeoutMs: 500, echoEveryMs } },
        timings: { backOffMs: () => 1 },
        onEvent(event) {
          events.push(event);
          for (const one of waiting.filter(({ kind }) => kind === event.kind)) one.resolve();
        },
      },
    );
    return acquirer;
  }

  test("breaks the connection after it booked a Sale: in doubt, and reversed over the next connection", async () => {
    const link = await open();
    const till = new Till();
    const sale = till.sale("tok_break");
    // The first host processed it; the second, to which the link moves on, has its own books.
    await expect(link.ask(sale, patient)).rejects.toBeInstanceOf(NoAnswer);
    expect(await nth(0).order("books")).toEqual([expect.stringContaining("SALE 15000000 00 stands")]);
    await nth(1).order("refuse on");
    const back = happens("up");
    await nth(1).order("break");
    await back;
    expect((await link.ask(till.reversal(sale), patient)).responseCode).toBe("00");
    expect((await link.ask(till.settlement(emptyTotals), patient)).responseCode).toBe("00");
    expect(await nth(0).order("books")).toEqual([expect.stringContaining("SALE 15000000 00 reversed")]);
  });

  test("refuses to sign on: the next host is used", async () => {
    await nth(0).order("refuse on");
    const link = await open();
    expect(link.health().detail).toContain(`127.0.0.1:${nth(1).port}`);
    const reasons = events.flatMap((event) => (event.kind === "unusable" ? [event.detail] : []));
    expect(reasons).toEqual(["the host refused the sign-on with 91"]);
    expect((await link.ask(new Till().sale("tok_approve"), patient)).responseCode).toBe("00");
  });

  test("answers nothing, no echo either: in doubt, and the repeat of what it took is acted on once", async () => {
    const link = await open(100);
    const till = new Till();
    const sale = till.sale("tok_approve");
    await nth(0).order("deaf on");
    const down = happens("down");
    await expect(link.ask(sale, patient)).rejects.toBeInstanceOf(NoAnswer);
    await down;
    expect(events).toContainEqual(expect.objectContaining({ kind: "down", detail: "the host did not answer an echo" }));
    await nth(0).order("deaf off");
    await nth(1).order("refuse on");
    const back = happens("up");
    await nth(1).order("break");
    await back;
    expect((await link.ask(again(sale), patient)).responseCode).toBe("00");
    const once = { ...emptyTotals, saleQuantity: 1, saleTotalMinor: sale.amountMinor };
    expect((await link.ask(till.settlement(once), patient)).responseCode).toBe("00");
  });

  test("approves another amount: the ledger treats it as a partial approval, and reverses it", async () => {
    const link = await open();
    const till = new Till();
    const sale = till.sale("tok_partial");
    expect((await link.ask(sale, patient)).responseCode).toBe("10");
    expect(link.approvals).toContain("10");
    expect((await link.ask(till.reversal(sale), patient)).responseCode).toBe("00");
  });

  test("has other totals: 95, and the batch is settled after the upload", async () => {
    const link = await open();
    const till = new Till();
    const sale = till.sale("tok_approve");
    const answer = await link.ask(sale, patient);
    const totals = { ...emptyTotals, saleQuantity: 1, saleTotalMinor: sale.amountMinor };
    const settlement = till.settlement(totals);
    await nth(0).order("totals 1");
    const own = `00000${`${sale.amountMinor}00`.padStart(14, "0")}${"0".repeat(38)}`;
    expect(await link.ask(settlement, patient)).toMatchObject({ responseCode: "95", ownTotals: { 63: own } });
    expect((await link.ask(till.upload(sale, answer), patient)).responseCode).toBe("00");
    await nth(0).order("totals 0");
    expect(await link.ask({ ...settlement, afterUpload: true }, patient)).toMatchObject({
      responseCode: "00",
      settlementDate: "0201",
    });
  });
});
