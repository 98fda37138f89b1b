import { expect, test } from "vitest";
import { newId } from "../ids.ts";
import { type HistoryRow, historyText } from "./history-export.ts";

const row: HistoryRow = {
  partnerId: newId<"partner">(),
  id: newId<"notification">(),
  transactionId: null,
  command: "SALE",
  callBackUrl: null,
  createdAtMs: Date.UTC(2026, 10, 21, 8),
  state: "accepted",
  content: '{"kind":"card","command":"SALE","fields":{"amount":"1.50","merchantTransId":"a,\\"b\\""}}',
  attempts: [
    {
      round: 0,
      attemptNo: 1,
      startedAtMs: Date.UTC(2026, 10, 21, 8, 0, 1),
      durationMs: 12,
      url: "https://partner.example/ipn",
      address: "192.0.2.1",
      httpStatus: 204,
      reason: null,
      keyId: null,
    },
  ],
};

async function written(rows: readonly HistoryRow[], format: "json-lines" | "csv"): Promise<string> {
  const pages = (async function* () {
    yield rows;
  })();
  let text = "";
  for await (const part of historyText(pages, format)) text += part;
  return text;
}

test("a line of JSON has the content as it was committed, and every attempt", async () => {
  const text = await written([row, row], "json-lines");
  expect(text.endsWith("\n")).toBe(true);
  const [line = "", ...others] = text.trimEnd().split("\n");
  expect(others).toHaveLength(1);
  expect(line).toContain(`"content":${row.content}`);
  expect(JSON.parse(line)).toMatchObject({
    id: row.id,
    createdAt: "2026-11-21T08:00:00.000Z",
    attempts: [{ startedAt: "2026-11-21T08:00:01.000Z", httpStatus: 204 }],
    content: { fields: { amount: "1.50" } },
  });
});

test("a CSV cell is quoted where it has to be, and is no formula in a spreadsheet", async () => {
  const formula = { ...row, content: JSON.stringify({ fields: { merchantTransId: "=HYPERLINK(1)", amount: "-5" } }) };
  const [head = "", first = "", second = "", rest] = (await written([row, formula], "csv")).split("\r\n");
  expect(rest).toBe("");
  const at = head.split(",").indexOf("merchantTransId");
  expect(first).toContain(',"a,""b""",1.50,');
  expect(second.split(",").slice(at, at + 2)).toEqual(["'=HYPERLINK(1)", "'-5"]);
  expect(second.split(",")).toHaveLength(head.split(",").length);
});

test("a day without notifications is a CSV of its heading, and no JSON line", async () => {
  expect(await written([], "json-lines")).toBe("");
  expect(await written([], "csv")).toBe(
    "id,partnerId,transactionId,command,createdAt,state,attempts,lastAttemptAt,url,httpStatus,reason," +
      "merchantTransId,amount,currency,status,isoResponseCode,tid,mid,refId,reqId\r\n",
  );
});
