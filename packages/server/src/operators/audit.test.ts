import { expect, test } from "vitest";
import type { AuditRecord } from "./audit.ts";
import { exportedLine } from "./audit.ts";

const record: AuditRecord = {
  seq: 7,
  atMs: Date.UTC(2026, 0, 31, 12, 30, 1, 250),
  actor: "Zoë\u2028<1>",
  role: "admin",
  tokenId: "t",
  address: "192.0.2.7",
  action: "changePartner",
  subject: "p",
  before: '{"name":"a\\nb"}',
  after: "",
  hash: "ab",
};

test("an entry is one JSON line, in ASCII, whatever stands in it", () => {
  const line = exportedLine(record, "json-lines");
  expect(line).toMatch(/^[\x20-\x7e]+$/);
  const { atMs: _, ...rest } = record;
  expect(JSON.parse(line)).toEqual({ at: "2026-01-31T12:30:01.250Z", ...rest });
});

test("as syslog it is RFC 5424, and its message is the same JSON", () => {
  const line = exportedLine(record, "syslog", "host-1");
  const shape = /^<109>1 2026-01-31T12:30:01\.250Z host-1 paybell \d+ changePartner - (\{.*\})$/;
  expect(line).toMatch(shape);
  expect(shape.exec(line)?.[1]).toBe(exportedLine(record, "json-lines"));
});

test("an action that is no MSGID is cut to one, or left out", () => {
  const msgId = (action: string) => exportedLine({ ...record, action }, "syslog", "h").split(" ")[5];
  expect(msgId("a b".repeat(20))).toBe("ab".repeat(16));
  expect(msgId("é")).toBe("-");
});
