import { describe, expect, test, vi } from "vitest";
import { field, LedgerBench, LedgerTill } from "./ledger.fixture.ts";

const { bench, instance, partner } = await LedgerBench.ofFile();

test("INIT is durable before the acquirer is asked", async () => {
  const till = new LedgerTill();
  const found: unknown[] = [];
  const ask = instance.acquirer.ask.bind(instance.acquirer);
  const asked = vi.spyOn(instance.acquirer, "ask").mockImplementation(async (message, options) => {
    if (message.tid === till.tid) {
      const { transactionId } = message;
      found.push(...(await bench.query("SELECT command, state FROM transactions WHERE id = $1", [transactionId])));
    }
    return await ask(message, options);
  });
  const sale = await instance.ended(partner, till.sale());
  const preAuth = await instance.ended(partner, till.preAuth());
  await instance.ended(partner, till.complete(preAuth));
  await instance.ended(partner, till.void(sale));
  await instance.ended(partner, till.logon());
  asked.mockRestore();
  const commands = ["SALE", "PREAUTH", "PREAUTH_COMPLETE", "VOID", "LOGON"];
  expect(found).toEqual(commands.map((command) => ({ command, state: "INIT" })));
});

test("the result, its IPN and the pending delivery are committed together, and passed on once", async () => {
  const sale = await instance.ended(partner, new LedgerTill().sale());
  expect(await bench.ipnsOf(sale.id)).toEqual([sale.facts]);
  const { id, state } = sale.notification ?? {};
  expect(state).toBe("pending");
  expect(await bench.query("SELECT id, queue, round, attempts_made FROM pending WHERE id = $1", [id])).toEqual([
    { id, queue: "", round: 0, attempts_made: 0 },
  ]);
  expect(instance.passedOn.map((one) => one.id)).toContain(id);
});

test("a Logon moves no money and sends no IPN", async () => {
  const logon = await instance.ended(partner, new LedgerTill().logon());
  expect(logon).toMatchObject({ command: "LOGON", state: "SUCCESS", notification: null });
  expect(await bench.ipnsOf(logon.id)).toEqual([]);
});

describe("a reqId that comes again", () => {
  test("with the same body while the first is running waits for its outcome, and asks the acquirer once", async () => {
    const till = new LedgerTill();
    const request = till.sale("tok_slow_80");
    const answers = await Promise.all(Array.from({ length: 5 }, () => instance.ended(partner, request)));
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1);
    const [first] = answers;
    expect(await bench.ipnsOf(first?.id ?? ("" as never))).toHaveLength(1);
    expect(bench.bank.all().filter(({ tid }) => tid === till.tid)).toHaveLength(1);
    const reordered = Object.fromEntries(Object.entries(request).reverse()) as typeof request;
    const again = await instance.ended(partner, { ...reordered, reqId: request.reqId.toUpperCase() });
    expect(again).toMatchObject({ id: first?.id, state: "SUCCESS" });
  });

  test("from another partner is another command", async () => {
    const request = new LedgerTill().sale();
    const [mine, theirs] = [await bench.partner(), await bench.partner()];
    const [one, other] = await Promise.all([mine, theirs].map((whose) => instance.ended(whose, request)));
    expect(one).toMatchObject({ partnerId: mine.id, state: "SUCCESS" });
    expect(other).toMatchObject({ partnerId: theirs.id, state: "SUCCESS" });
  });

  test("for every command returns the first result", async () => {
    const till = new LedgerTill();
    const sale = till.sale();
    const sold = await instance.ended(partner, sale);
    const preAuth = await instance.ended(partner, till.preAuth());
    const requests = [
      sale,
      till.complete(preAuth),
      till.void(sold),
      till.logon(),
      till.batchUpload(),
      till.reversalOf(crypto.randomUUID()),
      till.settlement(),
    ];
    for (const request of requests) {
      const first = await instance.ended(partner, request);
      const again = await instance.ended(partner, request);
      expect(again).toMatchObject({ id: first.id, command: request.command, state: "SUCCESS" });
    }
  });

  test("with another body is refused; a refusal does not use the reqId up", async () => {
    const till = new LedgerTill();
    const sale = till.sale();
    await expect(instance.run(partner, { ...sale, amount: "0" })).rejects.toMatchObject({ status: 400 });
    const first = await instance.ended(partner, sale);
    const other = instance.run(partner, { ...sale, amount: "150001" });
    const message = expect.stringContaining("came with another body");
    await expect(other).rejects.toMatchObject({ status: 409, code: "req_id_reused", message });
    await instance.ended(partner, till.void(first));
    const voiding = till.void(first);
    await expect(instance.run(partner, voiding)).rejects.toMatchObject({ code: "already_voided" });
    const third = await instance.ended(partner, till.sale());
    expect(await instance.ended(partner, { ...voiding, transactionId: third.id })).toMatchObject({ state: "SUCCESS" });
  });

  test.each(["SALE", "VOID", "SETTLEMENT"] as const)("on two instances at once is one %s", async (command) => {
    const other = await bench.start();
    for (let round = 0; round < 5; round += 1) {
      const till = new LedgerTill();
      const sale = await instance.ended(partner, till.sale());
      const request = command === "SALE" ? till.sale() : command === "VOID" ? till.void(sale) : till.settlement();
      const both = await Promise.all([instance.ended(partner, request), other.ended(partner, request)]);
      expect(new Set(both.map(({ id }) => id)).size).toBe(1);
      expect(both).toMatchObject([{ state: "SUCCESS" }, { state: "SUCCESS" }]);
    }
  });
});

describe("a terminal's numbers", () => {
  test("run from 000001 to 999999 and start again, traceNo, invoiceNo and batchNo independently", async () => {
    const till = new LedgerTill();
    await instance.ended(partner, till.logon());
    const near = "trace_no = 999997, invoice_no = 999998, batch_no = 999999";
    await bench.query(`UPDATE terminals SET ${near} WHERE partner_id = $1 AND tid = $2`, [partner.id, till.tid]);
    const numbers = ["traceNo", "invoiceNo", "batchNo"];
    const told: unknown[] = [];
    for (const request of [till.sale(), till.sale(), till.logon(), till.settlement(), till.sale()]) {
      const ended = await instance.ended(partner, request);
      told.push(numbers.map((name) => field(ended, name) ?? ""));
    }
    expect(told).toEqual([
      ["999998", "999999", "999999"],
      ["999999", "000001", "999999"],
      ["000001", "", ""],
      ["000002", "", "999999"],
      ["000003", "000002", "000001"],
    ]);
  });

  test("of one partner do not affect another partner's terminal with the same tid", async () => {
    const till = new LedgerTill();
    const stranger = await bench.partner();
    await instance.ended(partner, till.sale());
    const first = await instance.ended(stranger, { ...till.sale(), mid: "M-OTHER" });
    expect(first.facts.fields).toMatchObject({ traceNo: "000001", invoiceNo: "000001", batchNo: "000001" });
  });
});

describe("a terminal", () => {
  test("has one mid: another one is refused, and uses no number", async () => {
    const till = new LedgerTill();
    await instance.ended(partner, till.sale());
    for (const request of [till.sale(), till.preAuth(), till.logon(), till.settlement(), till.batchUpload()]) {
      const other = instance.run(partner, { ...request, mid: "M-OTHER" });
      await expect(other).rejects.toMatchObject({ status: 409, code: "terminal_mid_mismatch" });
    }
    expect(field(await instance.ended(partner, till.sale()), "traceNo")).toBe("000002");
  });

  test("begun under two mids at once, on two instances, gets one merchant", async () => {
    const other = await bench.start();
    for (let round = 0; round < 10; round += 1) {
      const till = new LedgerTill();
      const asked = await Promise.allSettled([
        instance.ended(partner, till.sale()),
        other.ended(partner, { ...till.sale(), mid: "M-OTHER" }),
      ]);
      const refused = asked.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
      expect(refused).toMatchObject([{ code: "terminal_mid_mismatch" }]);
    }
  });

  test("that is not registered is refused if the partner accepts only registered ones", async () => {
    const strict = await bench.partner({ terminals: "registered" });
    const till = new LedgerTill();
    for (const request of [till.sale(), till.settlement()]) {
      const refused = instance.run(strict, request);
      await expect(refused).rejects.toMatchObject({ status: 409, code: "terminal_not_registered" });
    }
  });

  test("has one currency in its open batch, until that is settled or contains nothing that counts", async () => {
    const till = new LedgerTill();
    const declined = await instance.ended(partner, till.sale("tok_decline_05", "150000", "VND"));
    expect(declined.state).toBe("ERROR");
    await instance.ended(partner, till.sale("tok_approve", "12.50", "USD"));
    const other = instance.run(partner, till.sale("tok_approve", "150000", "VND"));
    await expect(other).rejects.toMatchObject({ status: 409, code: "batch_currency" });
    const preAuth = await instance.ended(partner, till.preAuth("tok_approve", "150000", "VND"));
    const complete = till.complete(preAuth);
    await expect(instance.run(partner, complete)).rejects.toMatchObject({ status: 409, code: "batch_currency" });
    await instance.ended(partner, till.settlement());
    expect(await instance.ended(partner, complete)).toMatchObject({ state: "SUCCESS" });
  });

  test("begun in two currencies at once gets one of them", async () => {
    const till = new LedgerTill();
    const asked = await Promise.allSettled([
      instance.ended(partner, till.sale("tok_approve", "12.50", "USD")),
      instance.ended(partner, till.sale("tok_approve", "150000", "VND")),
    ]);
    const refused = asked.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
    expect(refused).toMatchObject([{ code: "batch_currency" }]);
  });
});

test("a command that cannot be accepted now is refused as unavailable, and leaves nothing behind", async () => {
  const leaving = await bench.start();
  await leaving.ledger.stop();
  const request = new LedgerTill().sale();
  await expect(leaving.run(partner, request)).rejects.toMatchObject({ status: 503, code: "unavailable" });
  expect(await instance.ledger.findByReqId(partner.id, request.reqId)).toBeUndefined();
});

test("a command whose INIT is being written at a stop is carried out before its link is closed", async () => {
  const leaving = await bench.start();
  const stopped = new Promise<void>((resolve) => {
    const stopNow = () => {
      resolve(leaving.ledger.stop().then(() => leaving.link.close()));
      return false;
    };
    leaving.life.breaksAt("begin", stopNow, new Error("this breaks nothing"));
  });
  expect(await leaving.ended(partner, new LedgerTill().sale())).toMatchObject({ state: "SUCCESS" });
  await stopped;
});

test("a REVERSAL that runs at a stop is answered before its reverser ends", async () => {
  const [leaving, till] = [await bench.start(), new LedgerTill()];
  const sale = await leaving.ended(partner, till.sale());
  const answer = bench.holdLink("the answer to a REVERSAL arrives");
  const reversal = await leaving.begun(partner, till.reversal(sale));
  await answer.reached;
  const stopped = leaving.ledger.stop();
  answer.go();
  await stopped;
  expect(await leaving.find(partner, reversal.id)).toMatchObject({ state: "SUCCESS" });
});

test("an approved part is a success for a command that allows it, and its amount from then on", async () => {
  const till = new LedgerTill();
  const request = { ...till.sale("tok_approve_10", "150001"), allowPartial: true };
  const sale = await instance.ended(partner, request);
  expect(sale).toMatchObject({
    state: "SUCCESS",
    amountMinor: 75_000n,
    facts: { fields: { isoResponseCode: "00", amount: "75000", approveCode: expect.stringMatching(/^\w{6}$/) } },
  });
  expect(await bench.ipnsOf(sale.id)).toEqual([sale.facts]);
  expect(await bench.reversalOf(sale.id)).toBeUndefined();
  expect(await instance.ended(partner, request)).toMatchObject({ id: sale.id, amountMinor: 75_000n });
  const preAuth = await instance.ended(partner, { ...till.preAuth("tok_approve_10"), allowPartial: true });
  await expect(instance.ended(partner, till.complete(preAuth, "75001"))).rejects.toThrow(/authorised for less/);
  await instance.ended(partner, till.complete(preAuth, "75000"));
  expect(await instance.ended(partner, till.void(sale))).toMatchObject({ state: "SUCCESS", amountMinor: 75_000n });
  expect(await instance.ended(partner, till.settlement())).toMatchObject({
    state: "SUCCESS",
    facts: { fields: { saleTotalAmount: "150000", voidTotalAmount: "75000", isoResponseCode: "00" } },
  });
});

test("no token, no key and no full card number is in a row or a log line", async () => {
  const token = "tok_then_slow_37";
  const sale = await instance.ended(partner, new LedgerTill().sale(token));
  const rows = await bench.query<{ row: string }>("SELECT to_jsonb(t)::text AS row FROM transactions t WHERE id = $1", [
    sale.id,
  ]);
  expect(rows[0]?.row).toContain("411111******1111");
  expect(rows[0]?.row).not.toContain(token);
  expect(instance.logged.join("")).not.toContain(token);
});
