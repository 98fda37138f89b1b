import { expect, test } from "vitest";
import { type ClearingProfile, clearingSchema } from "../acquirer/iso8583/profile/schema.ts";
import { type ClearingLine, readClearing, UnreadableClearing } from "./read-file.ts";

const csv = {
  format: "csv",
  header: true,
  columns: {
    kind: "TYPE",
    refId: "RRN",
    trace: "STAN",
    amount: "AMOUNT",
    currency: "CCY",
    date: "DATE",
    reason: "WHY",
  },
  kinds: { S: "sale", R: "refund", F: "fee", C: "chargeback", T: "skip" },
};
const fixed = {
  format: "fixed",
  skipLines: 1,
  amounts: "minor",
  currency: "VND",
  columns: { refId: { from: 1, length: 12 }, amount: { from: 13, length: 12 }, date: { from: 25, length: 8 } },
};
const currencies = { VND: { number: "704", exponent: 2 }, USD: { number: "840", exponent: 2 } };

/** Reads a file that comes in pieces of a few bytes. */
async function read(text: string | Buffer, section: object = csv): Promise<readonly ClearingLine[]> {
  const bytes = Buffer.from(text);
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += 7) yield bytes.subarray(at, at + 7);
  }
  const layout = { section: clearingSchema.parse(section) as ClearingProfile, currencies, timeZone: "UTC" };
  const lines: ClearingLine[] = [];
  for await (const page of readClearing(pieces(), layout)) lines.push(...page);
  return lines;
}

const header = "\uFEFFPAN,TYPE,RRN,STAN,AMOUNT,CCY,DATE,WHY";

test("a file of CSV has a line for each record that counts, and no column that the profile does not name", async () => {
  const lines = await read(
    [
      header,
      "4111111111111111,S,123456789012,417,12.50,840,20261121,",
      '4111111111111111,R,"123456789013",000418,-3.5,USD,20261121,',
      ",C,123456789012,417,12.50,USD,20261122,pan 4111 1111 1111 1111",
      ",F,,,0.30,USD,20261121,4222222222222",
      ",T,,,,,,",
      "",
    ].join("\r\n"),
  );
  expect(lines).toEqual([
    {
      line: 2,
      kind: "sale",
      refId: "123456789012",
      trace: "000417",
      tid: "",
      mid: "",
      minor: "1250",
      currency: "USD",
      day: "2026-11-21",
      reason: "",
    },
    {
      line: 3,
      kind: "refund",
      refId: "123456789013",
      trace: "000418",
      tid: "",
      mid: "",
      minor: "350",
      currency: "USD",
      day: "2026-11-21",
      reason: "",
    },
    {
      line: 4,
      kind: "chargeback",
      refId: "123456789012",
      trace: "000417",
      tid: "",
      mid: "",
      minor: "1250",
      currency: "USD",
      day: "2026-11-22",
      reason: "pan 4111 11****** 1111",
    },
    {
      line: 5,
      kind: "fee",
      refId: "",
      trace: "",
      tid: "",
      mid: "",
      minor: "30",
      currency: "USD",
      day: "2026-11-21",
      reason: "422222***2222",
    },
  ]);
});

test("a merchant's id is kept, though one in ten of 15 digits that begin with 1 looks like a card of UATP", async () => {
  const withMid = { ...csv, columns: { ...csv.columns, mid: "MID" } };
  const row = "1,S,1,1,1,USD,20261121,100000000000009,100000000000009";
  expect(await read(`${header},MID\n${row}\n`, withMid)).toMatchObject([
    { mid: "100000000000009", reason: "100000*****0009" },
  ]);
});

test("a file of fixed columns is read by its places, and its amounts with the host's decimals", async () => {
  const lines = await read(
    "HEADER 2026\n123456789012000015000000" + "20261121\nABC         00000000010020261122",
    fixed,
  );
  expect(lines.map(({ line, refId, minor, day }) => [line, refId, minor, day])).toEqual([
    [2, "123456789012", "150000", "2026-11-21"],
    [3, "ABC", "1", "2026-11-22"],
  ]);
  const names = `${"RRN".padEnd(12)}${"AMOUNT".padEnd(12)}DATE`;
  const [line] = await read(`HEADER 2026\n${names}\n12345678901200001500000020261121`, { ...fixed, header: true });
  expect(line).toMatchObject({ line: 3, refId: "123456789012", minor: "150000" });
});

test.each<[string, string | Buffer, string | undefined, number]>([
  ["a kind that the profile does not have", `${header}\n,X,1,1,1,USD,20261121,`, "kind", 2],
  ["an amount that is none", `${header}\n,S,1,1,1e5,USD,20261121,`, "amount", 2],
  ["more decimals than the currency has", `${header}\n,S,1,1,1.50,VND,20261121,`, "amount", 2],
  ["a currency that is none", `${header}\n,S,1,1,1,EUX,20261121,`, "currency", 2],
  ["a day that is none", `${header}\n\n,S,1,1,1,USD,20260230,`, "date", 3],
  ["no day", `${header}\n,S,1,1,1,USD,,`, "date", 2],
  ["no day after a line with one", `${header}\n,S,1,1,1,USD,20261121,\n,S,1,1,1,USD,,`, "date", 3],
  ["a trace that is no number", `${header}\n,S,1,a,1,USD,20261121,`, "trace", 2],
  ["a line that nothing identifies", `${header}\n,S,,,1,USD,20261121,`, "refId", 2],
  ["a line that ends early", `${header}\n,S,1,1,1,USD`, "date", 2],
  ["a header without a column", "TYPE,RRN\n", "trace", 1],
  ["an open quote", `${header}\n,S,"1,1,1,USD,20261121,\n`, undefined, 2],
  ["a character after a quote", `${header}\n,S,"1"2,1,1,USD,20261121,\n`, undefined, 2],
  ["a quote within a cell", `${header}\n4111111111111111"x,S,1,1,1,USD,20261121,\n`, undefined, 2],
  ["a day of no year", `${header}\n,S,1,1,1,USD,00001121,`, "date", 2],
  ["a header that names a column twice", "TYPE,RRN,STAN,STAN,AMOUNT,CCY,DATE,TEXT\n", "trace", 1],
  ["bytes that are not UTF-8", Buffer.concat([Buffer.from(`${header}\n`), Buffer.from([0xc3, 0x28])]), undefined, 2],
])("%s is named by line and column, and not quoted", async (_, text, column, line) => {
  const error = await read(text).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(UnreadableClearing);
  expect(error).toMatchObject({ line, column });
  expect(String(error)).not.toContain("4111");
});

test("a section that cannot describe a file is refused with everything that is wrong", () => {
  const problems = clearingSchema.safeParse({ format: "fixed", columns: { trace: "STAN", amount: 1 } });
  expect(problems.error?.issues.map(({ path, message }) => `${path.join(".")} ${message}`)).toEqual([
    "columns.date is required",
    "columns.currency is required, or clearing.currency",
    "columns.trace must have from and length",
    "columns.trace is a name, and clearing.header is false",
    "columns.amount must have from and length",
  ]);
});
