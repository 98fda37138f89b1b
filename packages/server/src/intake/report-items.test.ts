import { expect, test } from "vitest";
import type { CompletionRequest } from "../commands/reports/completion.ts";
import { ServiceError } from "../errors.ts";
import type { RefusedItem, ReportResult } from "../ledger/reports/reports.ts";
import { partnerSnapshot } from "../partners/partner.fixture.ts";
import { reportItems, reportUntilDurable } from "./report-items.ts";

test("an item of the wrong shape whose partner cannot be read now is refused for its shape alone", async () => {
  const sale = { externalId: "a", command: "SALE", status: "SUCCESS", isoResponseCode: "00" };
  const given = [{ ...sale, partnerId: partnerSnapshot().id, amount: 5 }, { externalId: "a".repeat(200) }];
  const [result, long] = await reportItems(
    given.map((item) => ({ item })),
    {
      directory: { find: () => Promise.reject(new Error("the database is away")) },
      isRegisteredDevice: async () => false,
      reports: { report: async () => [], recordRefused: async () => undefined },
    },
  );
  expect(result?.problem?.fields).toMatchObject([{ field: "amount", code: "wrong_type" }]);
  expect(long?.externalId).toBe("a".repeat(128));
});

test("what could not be made durable is reported again, without what was", async () => {
  const partner = partnerSnapshot();
  const item = (externalId: string) => ({
    item: { partnerId: partner.id, externalId, command: "SALE", status: "SUCCESS", isoResponseCode: "00", amount: "5" },
  });
  const reported: string[][] = [];
  const report = async (completions: readonly CompletionRequest[]): Promise<ReportResult[]> => {
    reported.push(completions.map(({ externalId }) => externalId));
    return completions.map(({ externalId }) =>
      externalId === "b" && reported.length === 1
        ? { externalId, result: "refused", problem: new ServiceError("unavailable") }
        : { externalId, result: "accepted" },
    );
  };
  const troubles: unknown[] = [];
  const refused: unknown[] = [];
  const results = await reportUntilDurable(
    ["a", "b", "c"].map(item),
    {
      directory: { find: async () => partner },
      isRegisteredDevice: async () => false,
      reports: { report, recordRefused: async (items: readonly unknown[]) => void refused.push(...items) },
    } as unknown as Parameters<typeof reportUntilDurable>[1],
    { signal: new AbortController().signal, onTrouble: (error) => void troubles.push(error) },
  );
  expect(results.map(({ externalId, result }) => `${externalId} ${result}`)).toEqual([
    "a accepted",
    "b accepted",
    "c accepted",
  ]);
  expect(reported).toEqual([["a", "b", "c"], ["b"]]);
  expect([troubles, refused]).toMatchObject([[{ code: "unavailable" }], []]);
});

test.each([
  ["NUL", "a\0b"],
  ["half of a surrogate pair", "a\ud800b"],
  ["a pair where it is cut", `${"a".repeat(99)}\u{1f600}`],
])("a field whose name holds %s is refused by a name that its event can be stored with", async (_, name) => {
  const refused: RefusedItem[] = [];
  const item = { partnerId: partnerSnapshot().id, externalId: "a", command: "SALE", status: "SUCCESS", [name]: "" };
  await reportItems([{ item }], {
    directory: { find: async () => partnerSnapshot() },
    isRegisteredDevice: async () => false,
    reports: { report: async () => [], recordRefused: async (items) => void refused.push(...items) },
  });
  const fields = refused.flatMap(({ problems }) => problems.map(({ field }) => field));
  expect(fields).toContainEqual(expect.stringMatching(/^a+\ufffdb?$/));
});
