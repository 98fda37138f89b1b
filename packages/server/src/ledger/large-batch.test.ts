import { expect, test } from "vitest";
import { field, LedgerBench, LedgerTill } from "./ledger.fixture.ts";

const sales = 50_000;
const amountMinor = 150_000n;

const { bench, instance, partner } = await LedgerBench.ofFile({ acquirerTimeoutMs: 30_000 });

/** Copies the first Sale to fill the batch, in the ledger's rows and in the bank's books, with ids that follow it. */
async function fillBatch(till: LedgerTill): Promise<void> {
  const first = await instance.ended(partner, till.sale());
  const columns =
    "partner_id, origin, command, state, chain_id, tid, batch_no, batch_id, amount_minor, currency, completed_at";
  await bench.query(
    `INSERT INTO transactions (id, req_id, facts, ${columns})
     SELECT (left(t.id::text, 24) || lpad(to_hex(n), 12, '0'))::uuid, gen_random_uuid()::text,
       jsonb_set(jsonb_set(t.facts::jsonb, '{fields,reqId}', to_jsonb('req-' || n)),
         '{fields,refId}', to_jsonb('ref-' || n))::json, ${columns}
     FROM transactions t, generate_series(2, $2) n WHERE t.id = $1`,
    [first.id, sales],
  );
  const { tid, mid } = till;
  const card = { cardToken: "tok_approve", swipeType: "C", expDate: "" };
  const place = { tid, mid, batchNo: "000001", repeat: false, atMs: 0, ...card } as const;
  for (let nth = 2; nth <= sales; nth += 1) {
    const numbers = { traceNo: String(nth).padStart(6, "0"), invoiceNo: String(nth).padStart(6, "0") };
    const transactionId = `${first.id.slice(0, 24)}${nth.toString(16).padStart(12, "0")}`;
    bench.bank.receive({ command: "SALE", transactionId, ...place, ...numbers, amountMinor, currency: "VND" });
  }
}

test("a batch of 50,000 settles completely, while other terminals continue", async () => {
  const till = new LedgerTill();
  await fillBatch(till);
  let settled = false;
  const settling = instance.ended(partner, till.settlement()).finally(() => {
    settled = true;
  });
  const other = new LedgerTill();
  const meanwhile: boolean[] = [];
  while (!settled) {
    await instance.ended(partner, other.sale());
    meanwhile.push(settled);
  }
  const { state, facts } = await settling;
  expect(meanwhile.filter((tooLate) => !tooLate).length).toBeGreaterThan(0);
  expect(state).toBe("SUCCESS");
  expect(facts.fields).toMatchObject({
    saleQuantity: String(sales),
    saleTotalAmount: String(BigInt(sales) * amountMinor),
    voidQuantity: "0",
  });
  const list = facts.kind === "settlement" ? facts.settlementList : [];
  expect(list).toHaveLength(sales);
  expect(new Set(list.map(({ reqId }) => reqId)).size).toBe(sales);
  expect(list.at(-1)).toMatchObject({ reqId: expect.any(String), refNo: expect.any(String) });
  expect(bench.bank.settledBatch(till.mid, till.tid, "VND")).toMatchObject({ saleQuantity: sales });
  expect(field(await instance.ended(partner, till.sale()), "batchNo")).toBe("000002");
});
